"""The harness is qualified: without any one of the core's guards, one of its rounds fails.

Each mutant is judged by the very round, pair or statement that the other modules run.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.db import DatabaseError, transaction

from scheduler.engine import acts, claim, dependents, enqueue, finish, hooks, reap, sift
from scheduler.models import ending, leasing
from scheduler.rules import acts as act_rules
from scheduler.rules import interruptions, leases, outcomes
from tests.clock import ManualClock
from tests.faults import test_core_kills, test_core_pairs, test_core_statements
from tests.faults.core_operations import OPERATIONS, Stage
from tests.faults.core_points import POINTS
from tests.faults.core_world import TABLES, World
from tests.faults.forking import Notes, empty
from tests.faults.mutants import Mutant
from tests.scheduler.make import only_kinds

pytestmark = [pytest.mark.concurrency, pytest.mark.prove]
Judge = Callable[[Path], None]


def kill(name: str) -> Judge:
    """A round at a point, with all tasks there."""

    def judge(folder: Path) -> None:
        (point,) = [one for one in POINTS if one.name == name]
        world = World(Notes(folder / "notes"))
        whole = -POINTS.index(point) % test_core_kills.ALL_TASKS_EVERY
        with only_kinds(*world.kinds()):
            test_core_kills.one_round(world, point, whole)

    return judge


def pair(first: str, second: str, *, lost: bool = False) -> Judge:
    """Two acts on one task, which its holder has lost before or not."""

    def judge(folder: Path) -> None:
        with only_kinds(), transaction.atomic():
            ring = test_core_pairs.Ring.make(ManualClock())
            if lost:
                test_core_pairs.test_a_holder_that_lost_its_lease_changes_nothing_beside_others(
                    ring, first, second
                )
            else:
                test_core_pairs.test_two_acts_on_a_running_task_have_one_winner(ring, first, second)
            transaction.set_rollback(True)

    return judge


def statements(name: str) -> Judge:
    """Each statement of an operation fails."""

    def judge(folder: Path) -> None:
        assert name in OPERATIONS
        with only_kinds(), transaction.atomic():
            stage = Stage.make(ManualClock())
            test_core_statements.test_a_statement_that_fails_leaves_all_or_nothing(
                stage, name, after=False
            )
            transaction.set_rollback(True)

    return judge


MUTANTS: list[tuple[Mutant, Judge]] = [
    (Mutant("token of a success", ending, "AND t.lease_token = ended.token\n", "\n"),
     pair("claim", "finish", lost=True)),
    (Mutant("token of a failure", finish, " or row.lease_token != ending.claim.token", ""),
     pair("claim", "fail", lost=True)),
    (Mutant("state of a success", ending, "t.state = 'running' AND t.lease_token",
            "t.lease_token"),
     pair("reap", "finish")),
    (Mutant("attempt counted at the claim", leasing,
            "attempt = attempt + 1, runs = runs + 1", "attempt = attempt, runs = runs"),
     kill("finish.committed")),
    (Mutant("token counted at the claim", leasing, "lease_token = lease_token + 1",
            "lease_token = lease_token"),
     pair("claim", "finish", lost=True)),
    (Mutant("one transaction for an end", finish, "with transaction.atomic():", "if True:"),
     kill("dependents.before")),
    (Mutant("one transaction for a loss", reap,
            "    with transaction.atomic():\n        same", "    if True:\n        same"),
     statements("reap")),
    (Mutant("one transaction for an act", acts,
            "        with transaction.atomic():\n            task",
            "        if True:\n            task"),
     statements("cancel")),
    (Mutant("one transaction for a request", enqueue,
            "with transaction.atomic():\n                return",
            "if True:\n                return"),
     statements("request: new")),
    (Mutant("one transaction for a skipped occurrence", sift,
            "    with transaction.atomic():\n        row", "    if True:\n        row"),
     statements("occurrence missed, skipped")),
    (Mutant("dependents are settled", dependents, "while settled:", "while False:"),
     kill("finish.committed")),
    (Mutant("dependents of what failed fail", dependents,
            "_fail_all(failed, now=now)\n\n\ndef fail", "{}\n\n\ndef fail"),
     kill("finish.committed")),
    (Mutant("leases of the dead are freed", reap, "if is_gone(runner)}", "if False}"),
     kill("claim.committed")),
    (Mutant("a lease that beat is kept", reap, "            beat=lease.beat,\n", ""),
     pair("beat", "reap")),
    (Mutant("a crash leaves history", reap,
            "if row.body_started else None\n    columns", "if False else None\n    columns"),
     kill("run.mid_effect")),
    (Mutant("three crashes are too many", leases, "if count >= MOST_CRASHES", "if count >= 99"),
     kill("quarantine.in_txn")),
    (Mutant("hooks outlive their runner", hooks,
            "    rows = list(orphans", "    rows = list(orphans.none()"),
     kill("retry.committed")),
    (Mutant("cancelled while it ran", outcomes,
            "    if row.cancelling:\n        changes |= closed(TaskState.CANCELLED, "
            "Reason.CANCELLED, now=now)\n    elif",
            "    if False:\n        pass\n    elif"),
     pair("cancel", "finish")),
    (Mutant("cancelled before it was lost", interruptions, "if row.cancelling:", "if False:"),
     pair("cancel", "reap")),
    (Mutant("what is over cannot be cancelled", act_rules,
            "if facts.existing.state not in LIVE:\n        raise facts.refuse(\"be cancelled\")",
            "if False:\n        pass"),
     pair("finish", "cancel")),
]  # fmt: skip


@pytest.fixture
def fresh_claims() -> Iterator[None]:
    """Claims are compiled once, with what they were compiled from."""
    claim._selection.cache_clear()
    yield
    claim._selection.cache_clear()


@pytest.mark.usefixtures("own", "fresh_claims")
@pytest.mark.parametrize(("mutant", "judge"), MUTANTS, ids=[one.name for one, _ in MUTANTS])
def test_a_guard_that_is_taken_out_is_missed(mutant: Mutant, judge: Judge, tmp_path: Path) -> None:
    empty(*TABLES)
    judge(tmp_path)

    empty(*TABLES)
    with mutant.alive():
        claim._selection.cache_clear()
        with pytest.raises((AssertionError, DatabaseError)):
            judge(tmp_path)
