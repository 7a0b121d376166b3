"""From a request to the start of its body: idle, and at half of what the runner can do.

On PostgreSQL the runner is another process, woken by NOTIFY, and the floor is a bare NOTIFY
between two connections. On SQLite it is a thread of this process.
"""

import multiprocessing
import os
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import psycopg
from django.db import connection, connections
from django.utils import timezone

from scheduler.engine import wakeup
from scheduler.management.benches import running
from scheduler.management.benches.measuring import (
    Report,
    Write,
    percentile,
    scratch_database,
    synchronous_commit,
    tidy,
)
from scheduler.models import Task
from scheduler.public import request
from scheduler.registry import REGISTRY, Kind

PROBE = "bench.probe"
CHANNEL = "kanade_bench_floor"
PROBES = 300
# Seconds between two probes, so that the runner is idle again.
PAUSE = 0.02
GOALS = {0.5: 2.5, 0.99: 5.0}
SQLITE_MOST_S = 0.010
SLICE_S = 0.05
Stamp = Callable[[], float]


def run(*, write: Write, probes: int = PROBES, **_options: object) -> bool:
    """Measure; return whether the goals are met."""
    report = Report("latency", write)
    with scratch_database(), running.only_kind(running.NOOP, running.nothing):
        REGISTRY.add(Kind(PROBE, _stamp))
        if connection.vendor != "postgresql":
            with _runner_thread() as stamp:
                idle = _probe(_ask, stamp, probes)
            took = percentile(idle, 0.5)
            report.at_most("idle, p50", took / SQLITE_MOST_S, 1.0, kanade_ms=took * 1000)
            return report.is_ok
        for is_durable in (False, True):
            _beside_floor(report, probes, is_durable=is_durable)
    return report.is_ok


def _beside_floor(report: Report, probes: int, *, is_durable: bool) -> None:
    """Compare with NOTIFY, which waits for no disk; so the goal is for commits that do not."""
    with synchronous_commit(on=is_durable):
        capacity = _capacity()
    with _process(_listen) as stamp:
        floor = _probe(_notify, stamp, probes, is_durable=is_durable)
    with _process(partial(_work, is_durable=is_durable)) as stamp:
        idle = _probe(_ask, stamp, probes, is_durable=is_durable)
        with _process(partial(_load, capacity / 2)):
            busy = _probe(_ask, stamp, probes, is_durable=is_durable)
    mode = ", durable" if is_durable else ""
    _tell(report, f"idle{mode}", idle, floor)
    _tell(report, f"half load{mode}", busy, floor, tasks_per_s=capacity / 2)


def _ask() -> None:
    request(PROBE)


def _tell(report: Report, case: str, ours: list[float], floor: list[float], **more: object) -> None:
    for share, goal in GOALS.items():
        mine, least = percentile(ours, share), percentile(floor, share)
        report.at_most(
            f"{case}, p{share * 100:g}",
            mine / least,
            goal,
            kanade_ms=mine * 1000,
            notify_ms=least * 1000,
            probes=len(ours),
            **more,
        )


_PIPE = os.pipe()


def _stamp(_fire: object) -> None:
    """Tell when this body started; the clock is the same in all processes of a machine."""
    os.write(_PIPE[1], struct.pack("d", time.monotonic()))


def _read_stamp() -> float:
    (found,) = struct.unpack("d", os.read(_PIPE[0], 8))
    return float(found)


def _probe(
    ask: Callable[[], object], stamp: Stamp, probes: int, *, is_durable: bool = True
) -> list[float]:
    """Return the seconds from each asking to the stamp that answers it."""
    pause, found = threading.Event(), []
    with synchronous_commit(on=is_durable):
        for _ in range(probes):
            pause.wait(PAUSE)
            began = time.monotonic()
            ask()
            found.append(stamp() - began)
    return found


def _capacity() -> float:
    """Return how many tasks a second one runner ends."""
    count = 3000
    running.fill(count)
    tidy()
    return count / running.drain()


@contextmanager
def _process(work: Callable[[], None]) -> Iterator[Stamp]:
    """Have `work` done in a fork of this process until the block ends; it says when it is ready."""
    connections.close_all()
    connections["default"].close_pool()  # type: ignore[attr-defined]  # PostgreSQL's wrapper
    process = multiprocessing.get_context("fork").Process(target=work, daemon=True)
    process.start()
    try:
        _read_stamp()
        yield _read_stamp
    finally:
        process.terminate()
        process.join()


def _work(*, is_durable: bool) -> None:
    """Run a runner that is woken by NOTIFY."""
    wakeup.Listener().start()
    loop = running.make_loop(workers=2)
    with synchronous_commit(on=is_durable):
        _stamp(None)
        loop.run()


def _listen() -> None:
    """Stamp each NOTIFY as it arrives: the least that any queue on this database needs."""
    with psycopg.connect(**connection.get_connection_params(), autocommit=True) as own:
        own.execute(f"LISTEN {CHANNEL}")
        _stamp(None)
        for _ in own.notifies():
            _stamp(None)


def _notify() -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"NOTIFY {CHANNEL}")


def _load(per_second: float) -> None:
    """Ask for tasks that do nothing, at this rate, in slices."""
    _stamp(None)
    pause = threading.Event()
    while True:
        began = time.monotonic()
        now = timezone.now()
        Task.objects.bulk_create(
            running.noop(now) for _ in range(max(1, round(per_second * SLICE_S)))
        )
        wakeup.announce_now()
        pause.wait(max(0.0, began + SLICE_S - time.monotonic()))


@contextmanager
def _runner_thread() -> Iterator[Stamp]:
    """Have a runner in a thread of this process until the block ends."""
    loop = running.make_loop(workers=2)
    thread = threading.Thread(target=loop.run, daemon=True)
    thread.start()
    try:
        yield _read_stamp
    finally:
        loop.stop()
        thread.join()
