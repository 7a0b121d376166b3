"""Claim, run and durably end tasks that do nothing, beside a queue written by hand and peers."""

from functools import partial

from scheduler.management.benches import peers, raw, running
from scheduler.management.benches.measuring import (
    ROUNDS,
    Report,
    Write,
    in_turn,
    scratch_database,
    seconds,
    synchronous_commit,
    tidy,
)
from scheduler.models import Run

TASKS = 10_000
BATCH = 100
GOAL = 0.5


def run(*, write: Write, tasks: int = TASKS, rounds: int = ROUNDS, **_options: object) -> bool:
    """Measure; return whether the goals are met."""
    report = Report("core", write)
    with scratch_database(), raw.table(), running.only_kind(running.NOOP, running.nothing):
        for is_durable in (False, True):
            with synchronous_commit(on=is_durable):
                _compare(report, tasks=tasks, rounds=rounds, is_durable=is_durable)
                _beside_peers(report, rounds=min(rounds, 3), is_durable=is_durable)
    return report.is_ok


def _compare(report: Report, *, tasks: int, rounds: int, is_durable: bool) -> None:
    ours, theirs = in_turn(lambda: _ours(tasks), lambda: _theirs(tasks), rounds=rounds)
    report.at_least(
        f"batch {BATCH}{', durable' if is_durable else ''}",
        ours / theirs,
        GOAL,
        kanade_per_s=ours,
        raw_sql_per_s=theirs,
        tasks=tasks,
        rounds=rounds,
    )


def _beside_peers(report: Report, *, rounds: int, is_durable: bool) -> None:
    for name, (drain, packages, tasks, goal) in peers.here().items():
        if not peers.is_installed(packages):
            report.left_out(f"beside {name}", f"install {' and '.join(packages)}")
            continue
        ours, theirs = in_turn(partial(_ours, tasks), partial(drain, tasks, BATCH), rounds=rounds)
        report.at_least(
            f"beside {name}{', durable' if is_durable else ''}",
            ours / theirs,
            goal,
            kanade_per_s=ours,
            peer_per_s=theirs,
            tasks=tasks,
            rounds=rounds,
        )


def _ours(tasks: int) -> float:
    """Return tasks a second through a whole runner, its thread included."""
    running.fill(tasks)
    tidy()
    took = running.drain()
    assert Run.objects.count() == tasks
    return tasks / took


def _theirs(tasks: int) -> float:
    raw.fill(tasks)
    tidy()
    return tasks / seconds(lambda: raw.drain(BATCH))
