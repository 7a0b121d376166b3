"""The agent dies at every point: no attempt starts twice, and every command is answered for."""

import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fleet.agent import identity
from fleet.agent.commands import Command, Retry
from fleet.agent.identity import read_identity
from fleet.agent.journal import Journal
from tests.fleet.agent import crashing
from tests.fleet.agent.crashing import POINTS
from tests.fleet.agent.make import command_id, make_command, make_script
from tests.fleet.agent.server import FakeServer
from tests.fleet.agent.until import until

pytestmark = pytest.mark.concurrency

ROOT = Path(__file__).resolve().parent.parent.parent.parent
PROVE = os.environ.get("KANADE_PROVE") == "1"
# The ten points of an agent's work that are promised; the others lie between them.
PROMISED = {
    "fetch.received",
    "journal.started",
    "exec.spawned",
    "exec.exited",
    "journal.result",
    "post.sent",
    "post.acked",
    "outbox.deleted",
    "rotate.saved",
    "seq.saved",
}
ROUNDS = (200, 20) if PROVE else (1, 1)
RANDOM_KILLS = 60 if PROVE else 4
KILLED = -signal.SIGKILL


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FakeServer]:
    made = FakeServer()
    made.now = lambda: datetime.now(UTC)
    found = read_identity(made.enrolled(), server=made.url, name="pc-1")
    identity.save(tmp_path, found)
    Journal(tmp_path / "journal", expected=False).close()
    yield made
    made.close()


def noting(folder: Path, number: int, then: str = "exit 0", **fields: Any) -> Command:
    """A script that notes its command and attempt, once for each start."""
    now = datetime.now(UTC)
    text = f'echo "$KANADE_COMMAND $KANADE_ATTEMPT" >> {folder}/ran\n{then}\n'
    return make_command(
        number,
        script=make_script(text),
        issued_at=now,
        deadline_at=now + timedelta(hours=1),
        **fields,
    )


def starts(folder: Path) -> Counter[str]:
    path = folder / "ran"
    return Counter(path.read_text().splitlines() if path.exists() else [])


def wait_for_starts(folder: Path, count: int) -> None:
    until(lambda: len(starts(folder)) == count, what=f"{count} starts")


def wait_for_exchange(server: FakeServer, *, beyond: int) -> None:
    until(lambda: len(server.exchanges) > beyond, what="an exchange")


def environment(folder: Path) -> dict[str, str]:
    """Scripts' folders go with the test's: a killed agent leaves them behind."""
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    return os.environ | {"TMPDIR": str(temporary)}


class Nursery:
    """A process that forks agents, for its time one at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", crashing.__name__],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def work_once(self, folder: Path, url: str, point: str) -> int:
        """Let an agent work; return its exit status, negative for a signal."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        (folder / "tmp").mkdir(exist_ok=True)
        self._process.stdin.write(f"{folder}\t{url}\t{point}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module", autouse=True)
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    NURSERIES.append(made)
    yield made
    NURSERIES.remove(made)
    made.close()


NURSERIES: list[Nursery] = []


def work_once(folder: Path, server: FakeServer, point: str = "") -> int:
    code = NURSERIES[-1].work_once(folder, server.url, point)
    assert code in {0, KILLED}
    return code


def settle(folder: Path, server: FakeServer) -> None:
    """Let a healthy agent work until the server has nothing open."""
    for _ in range(5):
        assert work_once(folder, server) == 0
        if not server.pending:
            return
    raise AssertionError(f"still open: {list(server.pending)}")


def check(folder: Path, server: FakeServer, numbers: list[int]) -> None:
    """Each attempt started once at most, each command has one result, and it is true."""
    seen = starts(folder)
    assert [line for line, count in seen.items() if count > 1] == []
    for number in numbers:
        result = server.results[command_id(number)]
        ran = any(line.startswith(command_id(number)) for line in seen)
        assert result["outcome"] in {"succeeded", "outcome_unknown"}
        assert ran or result["outcome"] == "outcome_unknown"


def test_every_promised_point_is_one_where_agents_die() -> None:
    assert set(POINTS) >= PROMISED


@pytest.mark.parametrize("point", [point for point in POINTS if point != "attempt.ended"])
def test_no_crash_starts_a_command_twice_or_loses_it(
    tmp_path: Path, server: FakeServer, point: str
) -> None:
    rounds = ROUNDS[0] if point in PROMISED else ROUNDS[1]
    for number in range(1, rounds + 1):
        server.give(noting(tmp_path, number))
        server.extra = {"credential": server.enrolled()["credential"]} if "rot" in point else {}
        assert work_once(tmp_path, server, point) == KILLED
        server.extra = {}
        settle(tmp_path, server)
        if point == "exec.spawned":
            # The orphan runs on without its agent.
            wait_for_starts(tmp_path, number)
        check(tmp_path, server, [number])


UNKNOWN = {"journal.started", "exec before", "exec.spawned", "exec.exited", "outbox.put before"}


@pytest.mark.parametrize("point", ["journal.started before", *sorted(UNKNOWN), "outbox.put"])
def test_between_the_journal_and_the_outbox_the_outcome_is_unknown(
    tmp_path: Path, server: FakeServer, point: str
) -> None:
    server.give(noting(tmp_path, 1))
    assert work_once(tmp_path, server, point) == KILLED
    settle(tmp_path, server)
    expected = "outcome_unknown" if point in UNKNOWN else "succeeded"
    assert server.results[command_id(1)]["outcome"] == expected
    if point in {"journal.started", "exec before"}:
        assert starts(tmp_path) == Counter()


def test_a_crash_in_the_pause_before_a_retry_reports_the_attempt_that_ended(
    tmp_path: Path, server: FakeServer
) -> None:
    server.give(noting(tmp_path, 1, "exit 6", retry=Retry(times=2, backoff_s=1)))
    assert work_once(tmp_path, server, "attempt.ended") == KILLED
    settle(tmp_path, server)
    result = server.results[command_id(1)]
    assert (result["outcome"], result["exit_code"], result["retries"]) == ("failed", 6, 0)
    assert starts(tmp_path) == Counter({f"{command_id(1)} 1": 1})


@pytest.mark.parametrize("seed", range(RANDOM_KILLS))
def test_kills_at_any_moment_never_start_a_command_twice(
    tmp_path: Path, server: FakeServer, seed: int
) -> None:
    chance = random.Random(seed)
    numbers = list(range(1, 9))
    server.give(*(noting(tmp_path, number, "sleep 0.3") for number in numbers))
    killed = 0
    for _ in range(4):
        before = len(server.exchanges)
        agent = subprocess.Popen(
            [sys.executable, "-m", crashing.__name__, str(tmp_path), server.url, ""],
            cwd=ROOT,
            env=environment(tmp_path),
            stderr=subprocess.DEVNULL,
        )
        wait_for_exchange(server, beyond=before)
        threading.Event().wait(chance.uniform(0, 0.25))
        agent.kill()
        killed += agent.wait(20) == KILLED
    assert killed > 0
    settle(tmp_path, server)
    # Orphans of killed agents may still be about to note themselves.
    until(lambda: not orphans(tmp_path), what="the orphans to end")
    check(tmp_path, server, numbers)


def orphans(folder: Path) -> list[str]:
    """Processes whose command line or environment names the folder's scripts."""
    listing = subprocess.run(
        ["pgrep", "-f", "kanade-run-.*/script.sh"], capture_output=True, text=True, check=False
    )
    return [pid for pid in listing.stdout.split() if _writes_to(pid, folder)]


def _writes_to(pid: str, folder: Path) -> bool:
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return str(folder).encode() in Path(arguments[-2].decode()).read_bytes()
    except (OSError, IndexError):
        return False
