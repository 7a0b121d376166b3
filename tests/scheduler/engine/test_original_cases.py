"""The original system's own tests, T01 to T30, with what ours does where it decides otherwise."""

from datetime import UTC, datetime, timedelta

import pytest

from scheduler import public
from scheduler.models import Task
from scheduler.registry import REGISTRY
from scheduler.rules.builder import BuilderError
from scheduler.rules.fire import Fire
from scheduler.rules.outcomes import Failed, Succeeded
from scheduler.rules.states import Outcome, TaskState
from tests.clock import ManualClock
from tests.scheduler.make import (
    HookRecorder,
    Recorder,
    Worker,
    due_of,
    make_kind,
    outcomes_of,
    reload,
    with_hooks,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def body() -> Recorder:
    return Recorder()


@pytest.fixture
def hooks() -> HookRecorder:
    return HookRecorder()


@pytest.fixture
def worker(clock: ManualClock, body: Recorder, hooks: HookRecorder) -> Worker:
    REGISTRY.add(with_hooks("demo", body, hooks))
    return Worker(clock)


def ask(clock: ManualClock, number: object = None, **options: object) -> int:
    return public.request("demo", input=number, now=clock.now, **options)  # type: ignore[arg-type]  # as given


def build(clock: ManualClock, number: object = None) -> public.TaskBuilder:
    """A builder whose request is made at the clock's time."""
    return public.TaskBuilder(
        lambda kind, **options: public.request(kind, now=clock.now, **options), "demo", number
    )


def boom(fire: Fire) -> object:
    raise RuntimeError(f"boom {fire.input}")


def test_tasks_run_when_due_and_after_what_they_wait_for(  # T02
    clock: ManualClock, worker: Worker, body: Recorder
) -> None:
    a = ask(clock, "A", after=2)
    b = ask(clock, "B")
    ask(clock, "C", depends_on=[a, b])
    ask(clock, "D", after=4)
    ask(clock, "E", after=3)

    for _ in range(6):
        while worker.run_due():
            pass
        clock.advance(1)

    assert body.inputs == ["B", "A", "C", "E", "D"]


def test_a_failed_run_is_tried_again_after_exactly_its_backoff(  # T03
    clock: ManualClock, worker: Worker, body: Recorder, hooks: HookRecorder
) -> None:
    body.answers = {1: boom, 2: boom}
    task = ask(clock, retry=public.Retry(3, 1, 3600))

    assert worker.run_due_and_hooks() == 1
    assert due_of(task) == clock.now + timedelta(seconds=1)
    clock.advance(0.999)
    assert worker.run_due_and_hooks() == 0
    clock.advance(0.001)
    assert worker.run_due_and_hooks() == 1
    assert due_of(task) == clock.now + timedelta(seconds=2)
    clock.advance(2)
    assert worker.run_due_and_hooks() == 1

    assert outcomes_of(task) == [Outcome.RETRYING, Outcome.RETRYING, Outcome.SUCCEEDED]
    assert hooks.calls == [("attempt failed", 0), ("attempt failed", 1)]


def test_a_simple_task_runs_once(clock: ManualClock, worker: Worker, body: Recorder) -> None:  # T04
    task = build(clock, 1).now()

    assert task > 0
    assert worker.run_due() == 1
    assert worker.run_due() == 0
    assert body.inputs == [1]


def test_a_key_is_free_again_when_its_task_is_over(  # T05
    clock: ManualClock, worker: Worker
) -> None:
    first = build(clock).key("k").now()
    worker.run_due()

    assert reload(first).state == TaskState.FINISHED.value
    assert build(clock).key("k").now() != first


def test_a_delayed_task_runs_at_its_time(clock: ManualClock, worker: Worker) -> None:  # T06
    build(clock).after(1)

    assert worker.run_due() == 0
    clock.advance(1)
    assert worker.run_due() == 1


def test_a_dependent_waits_for_all_of_its_dependencies(  # T07
    clock: ManualClock, worker: Worker, body: Recorder
) -> None:
    a, b = build(clock, "A").now(), build(clock, "B").now()
    build(clock, "C").depends_on(a).depends_on(b).schedule()
    first, second = worker.claim()

    worker.end(first)
    assert worker.claim() == []
    worker.end(second)
    assert [held.input for held in worker.claim()] == ["C"]


def test_one_failure_with_a_policy_ends_in_one_success(  # T08
    clock: ManualClock, worker: Worker, body: Recorder
) -> None:
    body.answers = {1: boom}
    task = build(clock).with_retry(public.Retry(3, 1, 3600)).schedule()

    worker.run_due_and_hooks()
    clock.advance(1)
    worker.run_due_and_hooks()

    assert outcomes_of(task) == [Outcome.RETRYING, Outcome.SUCCEEDED]


def test_the_automatic_policy_starts_at_a_minute(  # T09
    clock: ManualClock, worker: Worker, body: Recorder
) -> None:
    body.answers = {1: boom}
    task = build(clock).with_automatic_retry()

    worker.run_due_and_hooks()

    row = reload(task)
    assert row.due_at == clock.now + timedelta(seconds=60)
    assert (row.retry_count, row.retry_times) == (1, 10)


def test_a_chain_of_options_still_waits_for_its_dependencies(  # T10
    clock: ManualClock, worker: Worker, body: Recorder
) -> None:
    a, b = build(clock, "A").now(), build(clock, "B").now()
    build(clock, "C").key("c").schedule_after(0).depend_on([a, b]).with_retry(
        public.Retry(3, 1, 3600)
    ).schedule()

    while worker.run_due():
        pass

    assert body.inputs == ["A", "B", "C"]


def test_the_short_and_the_long_form_both_run(  # T11
    clock: ManualClock, worker: Worker, body: Recorder
) -> None:
    ask(clock, "x")
    build(clock, "y").now()

    worker.run_due()

    assert body.inputs == ["x", "y"]


def test_a_pipeline_runs_strictly_one_after_the_other(  # T12
    clock: ManualClock, worker: Worker
) -> None:
    one = build(clock, 1).key("1").now()
    two = build(clock, 2).key("2").after_task(one)
    build(clock, 3).key("3").after_task(two)

    for expected in (1, 2, 3):
        held = worker.claim_one()
        assert held.input == expected
        assert worker.claim() == []
        worker.end(held)


def test_two_dependencies_run_beside_each_other(clock: ManualClock, worker: Worker) -> None:  # T13
    a, b = build(clock, "A").now(), build(clock, "B").now()
    build(clock, "C").depend_on([a, b]).schedule()

    held = worker.claim()

    assert [one.input for one in held] == ["A", "B"]
    for one in held:
        worker.end(one)
    assert worker.claim_one().input == "C"


def test_a_dependent_with_a_time_waits_for_both(  # T14, D3
    clock: ManualClock, worker: Worker, body: Recorder
) -> None:
    a = build(clock, "A").now()
    build(clock, "C").depends_on(a).after(1)

    worker.run_due()
    assert worker.run_due() == 0
    clock.advance(1)
    worker.run_due()

    assert body.inputs == ["A", "C"]


def test_mixed_options_all_run(clock: ManualClock, worker: Worker, body: Recorder) -> None:  # T15
    a = build(clock, "A").now()
    build(clock, "B").key("b").schedule_after(0).after_task(a)
    build(clock, "C").key("c").with_retry(public.Retry(3, 1, 10)).schedule()

    while worker.run_due():
        pass

    assert sorted(map(str, body.inputs)) == ["A", "B", "C"]
    assert body.inputs.index("A") < body.inputs.index("B")


def test_a_builder_is_used_once(clock: ManualClock, worker: Worker) -> None:  # T16
    builder = build(clock)
    builder.now()

    with pytest.raises(BuilderError, match="requested already"):
        builder.now()

    assert Task.objects.count() == 1


def test_kinds_do_not_mix(clock: ManualClock, worker: Worker, body: Recorder) -> None:  # T17
    other = Recorder()
    REGISTRY.add(make_kind("other", other))
    ask(clock, "keyed", key="k")
    ask(clock, "free")
    public.request("other", input="other", key="k", now=clock.now)

    worker.run_due()

    assert (body.inputs, other.inputs) == (["keyed", "free"], ["other"])


def test_a_cron_waits_for_its_time(clock: ManualClock, worker: Worker) -> None:  # T18
    task = build(clock).key("k").cron("0 9 * * *").now()

    assert worker.run_due() == 0
    assert due_of(task) == datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def test_daily_at_is_a_cron(clock: ManualClock, worker: Worker) -> None:  # T19
    task = build(clock).key("k").daily_at(14, 30).schedule()

    assert worker.run_due() == 0
    assert reload(task).cron == "30 14 * * *"
    assert due_of(task) == datetime(2026, 3, 2, 14, 30, tzinfo=UTC)


def test_weekly_at_counts_from_sunday(clock: ManualClock, worker: Worker) -> None:  # T20
    clock.set(datetime(2026, 3, 4, 8, 0, tzinfo=UTC))
    task = build(clock).key("k").weekly_at(1, 9, 0).schedule()

    assert worker.run_due() == 0
    assert due_of(task) == datetime(2026, 3, 9, 9, 0, tzinfo=UTC)


def test_a_cron_keeps_its_retry_policy(clock: ManualClock, worker: Worker) -> None:  # T21
    policy = public.Retry(5, 60, 3600)
    task = build(clock).key("k").daily_at(2, 0).with_retry(policy).schedule()

    assert worker.run_due() == 0
    assert (reload(task).cron, reload(task).retry) == ("0 2 * * *", policy)


def test_a_cron_is_stored_as_it_was_typed(clock: ManualClock, worker: Worker) -> None:  # T22
    task = build(clock).key("k").cron("*/5  * * * *").schedule()

    assert reload(task).cron == "*/5  * * * *"


def test_a_running_task_cannot_be_taken_again(clock: ManualClock, worker: Worker) -> None:  # T23
    task = ask(clock, key="k")
    held = worker.claim_one()

    assert ask(clock, key="k", coalesce=True) == task
    assert worker.claim() == []
    worker.end(held)

    assert worker.claim() == []
    assert outcomes_of(task) == [Outcome.SUCCEEDED]


def test_a_cron_given_in_flight_makes_it_recur(clock: ManualClock, worker: Worker) -> None:  # T24
    task = ask(clock, key="k")
    held = worker.claim_one()

    ask(clock, key="k", cron="0 9 * * *")
    worker.end(held)

    row = reload(task)
    assert row.state == TaskState.PENDING.value
    assert row.due_at == datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


@pytest.mark.parametrize("second", [2, 1], ids=["T25 other input", "T26 same input"])
def test_a_request_in_flight_makes_exactly_one_more_run(
    clock: ManualClock, worker: Worker, second: int
) -> None:
    task = ask(clock, 1, key="k")
    held = worker.claim_one()

    assert ask(clock, second, key="k") == task
    assert worker.claim() == []
    worker.end(held)
    again = worker.claim_one()
    worker.end(again)

    assert (held.input, again.input) == (1, second)
    assert reload(task).state == TaskState.FINISHED.value
    assert outcomes_of(task) == [Outcome.SUCCEEDED, Outcome.SUCCEEDED]
    assert worker.claim() == []


def test_a_failing_cron_run_keeps_the_task_pending(  # T27
    clock: ManualClock, worker: Worker, hooks: HookRecorder
) -> None:
    task = ask(clock, key="k", cron="*/5 * * * *", run_on_startup=True)

    worker.fail(worker.claim_one())

    row = reload(task)
    assert (row.state, row.last_error) == (TaskState.PENDING.value, "boom")
    assert row.due_at == datetime(2026, 3, 2, 8, 5, tzinfo=UTC)
    assert outcomes_of(task) == [Outcome.FAILED]


def test_a_retry_uses_the_input_of_a_request_in_flight(  # T28
    clock: ManualClock, worker: Worker
) -> None:
    task = ask(clock, 1, key="k", retry=public.Retry(3, 0, 0))
    held = worker.claim_one()

    ask(clock, 2, key="k", retry=public.Retry(3, 0, 0))
    worker.end_and_call_hooks(held, Failed("boom"))
    again = worker.claim_one()
    assert (held.input, again.input) == (1, 2)
    assert reload(task).retry_count == 1
    worker.end(again)

    assert worker.claim() == []
    assert outcomes_of(task) == [Outcome.RETRYING, Outcome.SUCCEEDED]


def test_a_request_that_comes_with_the_finish_is_never_lost(  # T29
    clock: ManualClock, worker: Worker
) -> None:
    first = ask(clock, 1, key="k")
    held = worker.claim_one()
    worker.end(held)

    second = ask(clock, 2, key="k")
    again = worker.claim_one()
    worker.end(again)

    assert first != second
    assert (held.input, again.input) == (1, 2)
    assert Task.objects.live().filter(key="k").count() == 0
    assert reload(second).state == TaskState.FINISHED.value


@pytest.mark.parametrize("request_first", [True, False], ids=["before", "after"])
def test_a_cron_goes_on_with_the_newest_input(  # T30
    clock: ManualClock, worker: Worker, *, request_first: bool
) -> None:
    task = ask(clock, 1, key="k", cron="*/5 * * * *", run_on_startup=True)
    held = worker.claim_one()

    if request_first:
        ask(clock, 2, key="k", cron="*/5 * * * *")
        worker.end(held, Succeeded())
    else:
        worker.end(held, Succeeded())
        ask(clock, 2, key="k", cron="*/5 * * * *")

    row = reload(task)
    assert (row.input, row.due_at) == (2, datetime(2026, 3, 2, 8, 5, tzinfo=UTC))
    clock.advance(300)
    assert worker.claim_one().input == 2
