"""What survives a restart and a crash: X01 to X08."""

from datetime import timedelta

import pytest

from scheduler.engine import reap
from scheduler.engine.finish import LostLeaseError, finish_one
from scheduler.models import Dependency, Run, Task
from scheduler.rules.claims import Ending
from scheduler.rules.fire import Retry
from scheduler.rules.leases import LEASE, Lease
from scheduler.rules.outcomes import Failed, Succeeded
from scheduler.rules.states import Outcome, Reason, TaskState
from tests.clock import ManualClock
from tests.scheduler.engine.conftest import Ask
from tests.scheduler.make import (
    HookRecorder,
    Worker,
    due_of,
    make_runner,
    outcomes_of,
    reload,
)

pytestmark = pytest.mark.django_db


def another(clock: ManualClock) -> Worker:
    """A runner that starts afterwards."""
    return Worker(clock, make_runner("runner-b", pid=4712))


def lose(clock: ManualClock, observer: Worker) -> list[int]:
    """Let the observer see leases stand still for their whole time."""
    reaper = reap.Reaper(observer.runner.pk)
    reaper.scan(at=clock.monotonic(), now=clock.now)
    clock.advance(LEASE)
    return reaper.scan(at=clock.monotonic(), now=clock.now)


def test_a_delayed_task_waits_across_a_restart(  # X01
    clock: ManualClock, ask: Ask
) -> None:
    ask(after=100)

    restarted = another(clock)
    assert restarted.claim() == []
    clock.advance(100)
    assert len(restarted.claim()) == 1


def test_a_pending_retry_keeps_its_time_count_and_policy_across_a_restart(  # X02
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask(retry=Retry(3, 10, 100))
    worker.end_and_call_hooks(worker.claim_one(), Failed("boom"))

    restarted = another(clock)
    assert restarted.claim() == []
    clock.advance(10)
    restarted.end_and_call_hooks(restarted.claim_one(), Failed("boom"))

    assert reload(task).retry_count == 2
    assert due_of(task) == clock.now + timedelta(seconds=20)


def test_delay_and_policy_are_stored_with_the_request(clock: ManualClock, ask: Ask) -> None:  # X03
    row = reload(ask(after=30, retry=Retry(2, 5, 50)))

    assert (row.due_at, row.ready) == (clock.now + timedelta(seconds=30), False)
    assert row.retry == Retry(2, 5, 50)


def test_a_run_whose_runner_dies_runs_once_more_on_another(  # X04
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask()
    worker.claim_one()
    successor = another(clock)

    assert lose(clock, successor) == [task]
    row = reload(task)
    assert (row.state, row.suspect, row.crash_count) == (TaskState.PENDING.value, True, 1)
    again = successor.claim_suspect()
    successor.end(again)

    row = reload(task)
    assert (row.state, row.runs, row.crash_count) == (TaskState.FINISHED.value, 2, 0)
    assert outcomes_of(task) == [Outcome.CRASHED, Outcome.SUCCEEDED]


def test_a_lease_that_beats_is_never_freed(  # X12
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    ask()
    held = worker.claim_one()
    reaper = reap.Reaper(another(clock).runner.pk)

    for _ in range(20):
        assert reaper.scan(at=clock.monotonic(), now=clock.now) == []
        clock.advance(LEASE / 3)
        worker.beat()

    assert worker.end(held).lost == []


def test_a_holder_that_beats_between_the_look_and_the_blow_keeps_its_lease(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask()
    held = worker.claim_one()
    seen = Lease(task, held.token, reload(task).beat, worker.runner.pk)
    worker.beat()

    assert reap.free([seen], now=clock.now) == []

    assert worker.end(held).lost == []


def test_a_body_that_had_not_begun_is_no_suspect(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask()
    worker.claim_one()
    Task.objects.update(body_started=False)

    assert lose(clock, another(clock)) == [task]

    row = reload(task)
    assert (row.suspect, row.crash_count, row.attempt, row.runs) == (False, 0, 0, 0)
    assert outcomes_of(task) == []


def test_bodies_that_died_beside_others_are_suspects_without_a_count(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    tasks = [ask(), ask()]
    worker.claim()
    successor = another(clock)

    assert sorted(lose(clock, successor)) == tasks

    assert [(reload(task).suspect, reload(task).crash_count) for task in tasks] == [(True, 0)] * 2
    assert successor.claim() == []
    assert successor.claim_suspect().task_id == tasks[0]


def test_a_commit_of_the_finish_makes_dependents_due_and_leaves_the_hook_to_others(  # X05
    clock: ManualClock, worker: Worker, ask: Ask, hooks: HookRecorder
) -> None:
    first = ask()
    second = ask(depends_on=[first])

    worker.end(worker.claim_one(), Failed("boom"))
    # The runner dies here, its hook uncalled.
    successor = another(clock)
    lose(clock, successor)
    successor.call_orphaned_hooks()

    assert reload(second).ready is True
    assert hooks.calls == [("failed", 0)]
    assert reload(first).hook_run is None


def test_a_crash_with_a_rerun_pending_leaves_one_run_with_the_new_input(  # X06
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask(1, key="k")
    worker.claim_one()
    ask(2, key="k")
    successor = another(clock)

    lose(clock, successor)

    row = reload(task)
    assert (row.input, row.rerun, row.replaced) == (2, False, False)
    successor.end(successor.claim_suspect())
    assert reload(task).state == TaskState.FINISHED.value


def test_a_body_that_kills_its_process_each_time_is_quarantined(  # X07
    clock: ManualClock, worker: Worker, ask: Ask, hooks: HookRecorder
) -> None:
    task = ask()
    worker.claim_one()
    for number in range(3):
        successor = Worker(clock, make_runner(f"runner-{number}", pid=5000 + number))
        assert lose(clock, successor) == [task]
        clock.advance(30)
        if number < 2:
            successor.claim_suspect()

    row = reload(task)
    assert (row.state, row.reason) == (TaskState.QUARANTINED.value, Reason.CRASHED.value)
    assert outcomes_of(task) == [Outcome.CRASHED] * 3
    successor.call_orphaned_hooks()
    assert hooks.calls == [("failed", 0)]
    assert successor.claim() == []


def test_the_third_start_waits_half_a_minute(clock: ManualClock, worker: Worker, ask: Ask) -> None:
    task = ask()
    worker.claim_one()
    second = another(clock)
    lose(clock, second)
    assert due_of(task) == clock.now - timedelta(seconds=LEASE)
    second.claim_suspect()

    lose(clock, worker)

    assert due_of(task) == clock.now + timedelta(seconds=30)


def test_a_run_that_ends_clears_the_suspicion(clock: ManualClock, worker: Worker, ask: Ask) -> None:
    task = ask(key="k", cron="*/5 * * * *", run_on_startup=True)
    worker.claim_one()
    successor = another(clock)
    lose(clock, successor)

    successor.fail(successor.claim_suspect())

    row = reload(task)
    assert (row.suspect, row.crash_count) == (False, 0)


def test_the_end_of_a_run_and_its_edges_go_together(  # X08
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    first = ask()
    ask(depends_on=[first])

    worker.end(worker.claim_one())

    assert Dependency.objects.count() == 0


def test_a_late_finish_is_refused_and_changes_nothing(  # X11
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask()
    stale = worker.claim_one()
    dependents = [ask(depends_on=[task]), ask(depends_on=[task])]
    successor = another(clock)
    lose(clock, successor)
    successor.end(successor.claim_suspect(), Succeeded("good"))
    before = list(Task.objects.order_by("pk").values())

    with pytest.raises(LostLeaseError):
        finish_one(Ending(stale, Failed("late"), clock.now), runner_name="runner-a", now=clock.now)

    assert list(Task.objects.order_by("pk").values()) == before
    assert [reload(one).ready for one in dependents] == [True, True]
    assert Run.objects.filter(task_id=task).count() == 2


def test_a_finish_while_the_successor_runs_is_refused(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask()
    stale = worker.claim_one()
    successor = another(clock)
    lose(clock, successor)
    held = successor.claim_suspect()

    assert worker.end(stale).lost == [stale]

    row = reload(task)
    assert (row.state, row.lease_token) == (TaskState.RUNNING.value, held.token)
    assert row.runner_id == successor.runner.pk


def test_one_look_judges_by_the_database_clock(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask()
    worker.claim_one()
    reaper = reap.Reaper(another(clock).runner.pk)
    assert reaper.sweep(now=clock.now) == []

    row = reload(task)
    assert row.beat_at is not None
    Task.objects.update(beat_at=row.beat_at - timedelta(seconds=61))

    assert reaper.sweep(now=clock.now) == [task]


def test_a_graceful_stop_gives_back_without_a_count(  # X73
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask()
    held = worker.claim_one()

    assert reap.give_back([(held.task_id, held.token)], now=clock.now) == 1

    row = reload(task)
    assert (row.state, row.attempt, row.runs) == (TaskState.PENDING.value, 0, 0)
    assert (row.suspect, row.runner_id) == (False, None)
    assert worker.claim_one().attempt == 1


def test_what_was_lost_meanwhile_cannot_be_given_back(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    ask()
    stale = worker.claim_one()
    successor = another(clock)
    lose(clock, successor)
    held = successor.claim_suspect()

    assert reap.give_back([(stale.task_id, stale.token)], now=clock.now) == 0

    assert reload(held.task_id).state == TaskState.RUNNING.value
