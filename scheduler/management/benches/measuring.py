"""How benchmarks measure: both sides in turn, medians, in a database of their own."""

import gc
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import django
from django.db import connection

Write = Callable[[dict[str, object]], None]
ROUNDS = 5


@dataclass(slots=True)
class Report:
    """Writes one line for each goal, and keeps whether all were met."""

    bench: str
    write: Write
    is_ok: bool = True
    _about: dict[str, object] = field(default_factory=dict)

    def line(self, case: str, *, ratio: float, goal: str, ok: bool, **more: object) -> None:
        """Write how a goal was met; `goal` says it in words, such as `>= 0.5`."""
        self.is_ok = self.is_ok and ok
        self._about = self._about or surroundings()
        self.write(
            {
                "bench": self.bench,
                "case": case,
                "ratio": round(ratio, 3),
                "goal": goal,
                "ok": ok,
                **{name: _short(value) for name, value in more.items()},
                **self._about,
            }
        )

    def at_least(self, case: str, ratio: float, least: float, **more: object) -> None:
        """Write a ratio that is to be large."""
        self.line(case, ratio=ratio, goal=f">= {least:g}", ok=ratio >= least, **more)

    def at_most(self, case: str, ratio: float, most: float, **more: object) -> None:
        """Write a ratio that is to be small."""
        self.line(case, ratio=ratio, goal=f"<= {most:g}", ok=ratio <= most, **more)

    def left_out(self, case: str, reason: str) -> None:
        """Say what was not measured, and what it would need."""
        self.write({"bench": self.bench, "case": case, "left_out": reason})


def _short(value: object) -> object:
    return float(f"{value:.4g}") if isinstance(value, float) else value


def surroundings() -> dict[str, object]:
    """Return the versions and settings that a figure depends on."""
    found: dict[str, object] = {
        "python": platform.python_version(),
        "django": django.get_version(),
        "database": connection.vendor,
        "database_version": ".".join(map(str, connection.get_database_version())),
    }
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SHOW synchronous_commit")
            found["synchronous_commit"] = cursor.fetchone()[0]
    return found


def in_turn(
    one: Callable[[], float], other: Callable[[], float], *, rounds: int = ROUNDS
) -> tuple[float, float]:
    """Measure A B A B …; return the median of each side, in whatever unit they answer."""
    ones, others = [], []
    for _ in range(rounds):
        gc.collect()
        ones.append(one())
        gc.collect()
        others.append(other())
    return statistics.median(ones), statistics.median(others)


def seconds(work: Callable[[], object]) -> float:
    """Return how long a piece of work takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def percentile(values: list[float], share: float) -> float:
    """Return the value below which `share` (0 to 1) of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]


@contextmanager
def scratch_database() -> Iterator[None]:
    """Work in a database made for the occasion and dropped after; the real one is not touched."""
    with tempfile.TemporaryDirectory(prefix="kanade-bench-") as folder:
        test = connection.settings_dict["TEST"]
        given = test.get("NAME")
        if connection.vendor == "sqlite":
            # A file, as in earnest: in memory nothing is ever synced.
            test["NAME"] = str(Path(folder) / "bench.sqlite3")
        else:
            test["NAME"] = f"{connection.settings_dict['NAME']}_bench"
        real = connection.settings_dict["NAME"]
        connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
        try:
            yield
        finally:
            connection.creation.destroy_test_db(real, verbosity=0)
            test["NAME"] = given


@contextmanager
def synchronous_commit(*, on: bool) -> Iterator[None]:
    """Wait for the disk at each commit of this connection, or do not. PostgreSQL's alone."""
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute(f"SET synchronous_commit = {'on' if on else 'off'}")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET synchronous_commit")


def tidy() -> None:
    """Let the planner know what is in the tables."""
    with connection.cursor() as cursor:
        statement = "ANALYZE" if connection.vendor == "sqlite" else "VACUUM ANALYZE"
        cursor.execute(statement)
