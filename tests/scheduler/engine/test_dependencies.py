"""Tasks that wait for tasks: X55 to X67, D2, D12, D13."""

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import ProtectedError
from django.test.utils import CaptureQueriesContext

from scheduler import public
from scheduler.models import Dependency, Run, Task
from scheduler.rules.fire import Retry
from scheduler.rules.graph import DependencyError
from scheduler.rules.outcomes import Failed, Succeeded
from scheduler.rules.states import Outcome, Reason, TaskState
from tests.clock import ManualClock
from tests.scheduler.engine.conftest import Ask
from tests.scheduler.make import HookRecorder, Worker, due_of, make_runner, outcomes_of, reload

pytestmark = pytest.mark.django_db


def state_of(task: int) -> str:
    return reload(task).state


def test_a_failed_dependency_lets_its_dependents_run(worker: Worker, ask: Ask) -> None:  # X55, D2
    first = ask()
    second = ask(depends_on=[first])

    worker.end_and_call_hooks(worker.claim_one(), Failed("boom"))

    assert worker.claim_one().task_id == second


def test_a_dependent_that_requires_success_fails_with_its_dependency(  # X55, D2
    worker: Worker, ask: Ask, hooks: HookRecorder
) -> None:
    first = ask()
    second = ask(depends_on=[first], require_success=True)
    third = ask(depends_on=[second])

    worker.end_and_call_hooks(worker.claim_one(), Failed("boom"))
    worker.call_orphaned_hooks()

    row = reload(second)
    assert (row.state, row.reason) == (TaskState.FAILED.value, Reason.DEPENDENCY_FAILED.value)
    assert row.last_error == f"task {first} did not succeed"
    assert outcomes_of(second) == [Outcome.NOT_RUN]
    assert hooks.calls == [("failed", 0), ("failed", 0)]
    assert worker.claim_one().task_id == third


def test_failures_run_down_a_chain_that_requires_success(worker: Worker, ask: Ask) -> None:
    tasks = [ask()]
    for _ in range(4):
        tasks.append(ask(depends_on=[tasks[-1]], require_success=True))

    worker.end_and_call_hooks(worker.claim_one(), Failed("boom"))

    assert [state_of(task) for task in tasks] == [TaskState.FAILED.value] * 5
    assert Dependency.objects.count() == 0


def test_a_dependency_that_failed_before_is_settled_already(worker: Worker, ask: Ask) -> None:
    first = ask()
    worker.end_and_call_hooks(worker.claim_one(), Failed("boom"))

    free = ask(depends_on=[first])
    strict = ask(depends_on=[first], require_success=True)

    assert reload(free).ready is True
    assert (state_of(strict), reload(strict).reason) == (
        TaskState.FAILED.value,
        Reason.DEPENDENCY_FAILED.value,
    )


def test_a_recurring_task_whose_dependency_failed_waits_for_its_next_occurrence(
    worker: Worker, ask: Ask
) -> None:
    first = ask()
    second = ask(key="k", cron="0 * * * *", depends_on=[first], require_success=True)

    worker.end_and_call_hooks(worker.claim_one(), Failed("boom"))
    worker.call_orphaned_hooks()

    row = reload(second)
    assert (row.state, row.waits_for) == (TaskState.PENDING.value, 0)
    assert row.due_at is not None
    assert outcomes_of(second) == [Outcome.NOT_RUN]


def test_a_retrying_dependency_is_waited_for(  # X56
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    first = ask(retry=Retry(1, 5, 5))
    ask(depends_on=[first])
    worker.end_and_call_hooks(worker.claim_one(), Failed("boom"))
    assert worker.claim() == []

    clock.advance(5)
    worker.end(worker.claim_one())

    assert len(worker.claim()) == 1


@pytest.mark.parametrize("ended_first", [True, False])
def test_an_end_and_a_registration_never_miss_each_other(  # X57
    worker: Worker, ask: Ask, *, ended_first: bool
) -> None:
    first = ask()
    held = worker.claim_one()
    if ended_first:
        worker.end(held)
    second = ask(depends_on=[first])
    if not ended_first:
        worker.end(held)

    assert worker.claim_one().task_id == second
    assert worker.claim() == []


def test_only_unsettled_dependencies_are_waited_for(worker: Worker, ask: Ask) -> None:  # X58
    done = ask()
    worker.end(worker.claim_one())
    waiting = ask(after=60)

    assert reload(ask(depends_on=[done])).ready is True
    row = reload(ask(depends_on=[done, waiting]))
    assert (row.waits_for, row.due_at) == (1, None)


def test_a_dependency_that_was_never_issued_is_refused(worker: Worker, ask: Ask) -> None:  # X59
    first = ask()

    with pytest.raises(DependencyError, match=f"no task {first + 1000}"):
        ask(depends_on=[first, first + 1000])

    assert Task.objects.count() == 1


def test_a_dependency_that_was_pruned_counts_as_settled(worker: Worker, ask: Ask) -> None:  # D13
    first, _last = ask(), ask()
    Task.objects.filter(pk=first).delete()

    assert reload(ask(depends_on=[first], require_success=True)).ready is True


def test_nobody_waits_for_itself(worker: Worker, ask: Ask) -> None:  # X60
    task = ask(key="k", after=60)

    with pytest.raises(DependencyError, match="itself"):
        ask(key="k", depends_on=[task])

    assert reload(task).waits_for == 0


@pytest.mark.parametrize("length", [2, 3, 7])
def test_a_circle_is_refused_and_changes_nothing(  # X60
    worker: Worker, ask: Ask, length: int
) -> None:
    first = last = ask(key="0", after=60)
    for number in range(1, length):
        last = ask(key=str(number), depends_on=[last])
    before = list(Task.objects.order_by("pk").values())

    with pytest.raises(DependencyError, match="through others"):
        ask(key="0", depends_on=[last])

    assert list(Task.objects.order_by("pk").values()) == before
    assert Dependency.objects.filter(task=first).count() == 0


def test_a_task_that_others_wait_for_cannot_be_deleted(worker: Worker, ask: Ask) -> None:  # X61
    first = ask()
    ask(depends_on=[first])

    with pytest.raises(ProtectedError):
        reload(first).delete()

    assert Task.objects.count() == 2


def test_a_cancelled_dependency_settles(  # X61
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    first = ask(after=60)
    free = ask(depends_on=[first])
    strict = ask(depends_on=[first], require_success=True)

    public.cancel(first, now=clock.now)

    assert reload(free).ready is True
    assert state_of(strict) == TaskState.FAILED.value


def test_a_dependency_named_twice_is_one(worker: Worker, ask: Ask) -> None:  # X62
    first = ask()

    task = ask(depends_on=[first, first])

    assert reload(task).waits_for == 1
    worker.end(worker.claim_one())
    assert worker.claim_one().task_id == task


def test_a_recurring_dependency_is_settled_by_the_first_run_that_ends_afterwards(  # X63
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    daily = ask(key="k", cron="0 * * * *", run_on_startup=True)
    worker.end(worker.claim_one())
    task = ask(depends_on=[daily])
    assert reload(task).waits_for == 1

    clock.advance(hours=1)
    worker.end_and_call_hooks(worker.claim_one(), Failed("boom"))

    assert worker.claim_one().task_id == task


def test_a_dependent_waits_until_no_rerun_of_its_dependency_is_pending(  # X64, D12
    worker: Worker, ask: Ask
) -> None:
    first = ask(key="k")
    second = ask(depends_on=[first])
    held = worker.claim_one()
    ask(key="k")

    worker.end(held)
    again = worker.claim_one()
    assert again.task_id == first
    assert worker.claim() == []
    worker.end(again)

    assert worker.claim_one().task_id == second


def test_two_dependencies_that_end_apart_free_their_dependent_once(  # X65
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    a, b = ask("a"), ask("b")
    task = ask("c", depends_on=[a, b])
    other = Worker(clock, make_runner("runner-b"))
    mine, theirs = worker.claim(1)[0], other.claim(1)[0]

    worker.end(mine)
    assert reload(task).waits_for == 1
    other.end(theirs)

    assert [len(worker.claim()), len(other.claim())] == [1, 0]


def test_a_retry_waits_for_its_backoff_and_for_dependencies_named_in_flight(  # X66
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask(key="k", retry=Retry(3, 30, 30))
    held = worker.claim_one()
    other = ask("other", after=60)
    ask(key="k", depends_on=[other], retry=Retry(3, 30, 30))

    worker.end_and_call_hooks(held, Failed("boom"))
    clock.advance(30)
    assert worker.claim() == []
    clock.advance(30)
    worker.end(worker.claim_one())

    assert worker.claim_one().task_id == task


def test_backoff_is_waited_for_although_the_dependency_settled(  # X66
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask(key="k", retry=Retry(3, 30, 30))
    held = worker.claim_one()
    ask(key="k", depends_on=[ask("other")], retry=Retry(3, 30, 30))
    other = worker.claim_one()

    worker.end_and_call_hooks(held, Failed("boom"))
    worker.end(other)

    assert due_of(task) == clock.now + timedelta(seconds=30)
    assert worker.claim() == []
    clock.advance(30)
    assert worker.claim_one().task_id == task


def test_a_diamond_runs_its_last_task_once(worker: Worker, ask: Ask) -> None:  # X67
    top = ask("top")
    left, right = ask("left", depends_on=[top]), ask("right", depends_on=[top])
    ask("bottom", depends_on=[left, right])
    ran = []
    while held := worker.claim():
        for one in held:
            ran.append(one.input)
            worker.end(one)

    assert ran == ["top", "left", "right", "bottom"]


def test_a_thousand_dependents_are_freed_in_a_bounded_number_of_queries(  # X67
    worker: Worker, ask: Ask
) -> None:
    top = ask()
    for _ in range(1000):
        ask(depends_on=[top])
    held = worker.claim_one()

    with CaptureQueriesContext(connection) as queries:
        worker.end(held)

    assert Task.objects.filter(ready=True).count() == 1000
    assert len(queries) < 20


def test_a_thousand_dependencies_free_their_dependent_once(worker: Worker, ask: Ask) -> None:  # X67
    tasks = [ask() for _ in range(1000)]
    last = ask(depends_on=tasks)
    assert reload(last).waits_for == 1000

    while worker.run_due(limit=100) and not reload(last).ready:
        pass

    assert worker.claim_one().task_id == last


def test_the_dependents_of_a_running_task_are_not_freed_by_its_cancellation_yet(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    first = ask()
    second = ask(depends_on=[first])
    held = worker.claim_one()

    public.cancel(first, now=clock.now)
    assert reload(second).waits_for == 1
    worker.end(held, Succeeded())

    assert state_of(first) == TaskState.CANCELLED.value
    assert reload(second).ready is True


def test_a_failure_is_recorded_when_the_strict_dependent_could_not_run(
    worker: Worker, ask: Ask
) -> None:
    first = ask()
    second = ask(7, depends_on=[first], require_success=True)

    worker.end_and_call_hooks(worker.claim_one(), Failed("boom"))

    run = Run.objects.get(task_id=second)
    assert (run.input, run.started_at, run.hook_count) == (7, None, 0)
