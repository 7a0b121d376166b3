"""Requests for a key that is there already: X42 to X54, D4, D5, D8 to D10, D14."""

import logging
from datetime import UTC, datetime, timedelta

import pytest

from scheduler.models import Dependency, Run, Task
from scheduler.rules.fire import Fire, Retry
from scheduler.rules.outcomes import Failed, Succeeded
from scheduler.rules.states import Outcome, Reason, TaskState
from tests.clock import ManualClock
from tests.scheduler.engine.conftest import Ask
from tests.scheduler.make import HookRecorder, Recorder, Worker, due_of, outcomes_of, reload

pytestmark = pytest.mark.django_db
HOURLY = "0 * * * *"


def at(hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 3, 2, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize("ended", [Succeeded(), Failed("boom")], ids=["finished", "failed"])
def test_a_request_after_the_end_is_a_new_task(  # X42
    worker: Worker, ask: Ask, ended: Succeeded | Failed
) -> None:
    first = ask(key="k")
    worker.end_and_call_hooks(worker.claim_one(), ended)

    assert ask(key="k") != first
    assert len(outcomes_of(first)) == 1


def test_many_requests_in_flight_make_one_run_with_the_last_input(  # X43
    worker: Worker, ask: Ask
) -> None:
    task = ask(0, key="k")
    held = worker.claim_one()
    assert {ask(number, key="k") for number in range(1, 6)} == {task}

    worker.end(held)
    again = worker.claim_one()
    worker.end(again)

    assert again.input == 5
    assert worker.claim() == []


def test_a_request_during_the_retry_hook_is_absorbed_by_the_retry(  # X44
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask(1, key="k", retry=Retry(3, 60, 60))
    report = worker.fail(worker.claim_one())
    backoff = due_of(task)

    ask(2, key="k", retry=Retry(3, 60, 60))

    row = reload(task)
    assert (row.due_at, row.retry_count, row.input) == (backoff, 1, 2)
    worker.call_hooks(report)
    clock.advance(60)
    assert worker.claim_one().input == 2


def test_a_retry_is_not_taken_before_its_hook_was_called(  # X44
    worker: Worker, ask: Ask
) -> None:
    ask(retry=Retry(3, 0, 0))
    report = worker.fail(worker.claim_one())
    assert worker.claim() == []

    worker.call_hooks(report)

    assert len(worker.claim()) == 1


def test_a_request_in_flight_is_dropped_by_a_failure_for_good_and_recorded(  # X45, D9
    worker: Worker, ask: Ask
) -> None:
    task = ask(1, key="k")
    held = worker.claim_one()
    ask(2, key="k")

    worker.end_and_call_hooks(held, Failed("boom"))

    row = reload(task)
    assert (row.state, row.input, row.dropped) == (TaskState.FAILED.value, 1, 1)
    run = Run.objects.get()
    assert (run.dropped_request, run.input) == (True, 1)
    assert worker.claim() == []


@pytest.mark.parametrize("cron_first", [True, False])
def test_a_cron_and_a_run_asked_for_in_flight_are_both_kept(  # X46
    worker: Worker, ask: Ask, *, cron_first: bool
) -> None:
    task = ask(1, key="k")
    held = worker.claim_one()
    requests = [{"cron": HOURLY}, {}]
    for options in requests if cron_first else reversed(requests):
        ask(2, key="k", **options)

    worker.end(held)
    again = worker.claim_one()
    worker.end(again)

    assert again.input == 2
    assert (reload(task).state, due_of(task)) == (TaskState.PENDING.value, at(9))


def test_a_run_now_of_a_recurring_task_keeps_its_cron(  # X47, D5
    worker: Worker, ask: Ask
) -> None:
    task = ask(1, key="k", cron=HOURLY)
    assert ask(2, key="k") == task

    held = worker.claim_one()
    worker.end(held)

    assert (held.input, held.fire.occurrence_at) == (2, None)
    row = reload(task)
    assert (row.cron, row.due_at, row.extra) == (HOURLY, at(9), False)


def test_an_extra_run_that_crosses_the_occurrence_does_not_swallow_it(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    ask(key="k", cron=HOURLY)
    clock.set(at(8, 59))
    ask(key="k")
    held = worker.claim_one()
    clock.set(at(9, 1))

    worker.end(held)

    assert worker.claim_one().occurrence_at == at(9)


def test_an_extra_run_asked_for_later_comes_after_the_occurrence(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask(key="k", cron=HOURLY)
    ask(key="k", at=at(9, 30))
    ran = []
    for now in (at(9), at(9, 30), at(10)):
        clock.set(now)
        held = worker.claim_one()
        ran.append(held.fire.occurrence_at)
        worker.end(held)

    assert ran == [at(9), None, at(10)]
    assert due_of(task) == at(11)


def test_a_run_asked_for_in_flight_of_a_cron_keeps_the_cron(  # D5
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask(1, key="k", cron=HOURLY)
    clock.set(at(9))
    held = worker.claim_one()
    ask(2, key="k")

    worker.end(held)
    worker.end(worker.claim_one())

    assert (reload(task).cron, due_of(task)) == (HOURLY, at(10))


def test_a_request_in_backoff_runs_at_once_with_a_whole_budget(  # X48, D10
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask(1, key="k", retry=Retry(2, 60, 60))
    worker.end_and_call_hooks(worker.claim_one(), Failed("boom"))

    assert ask(2, key="k", retry=Retry(2, 60, 60)) == task

    held = worker.claim_one()
    assert (held.input, held.retry_count, held.attempt) == (2, 0, 1)


def test_a_policy_given_in_flight_does_not_rescue_this_run(  # X49
    worker: Worker, ask: Ask
) -> None:
    task = ask(key="k")
    held = worker.claim_one()
    ask(key="k", retry=Retry(5, 0, 0))

    worker.end_and_call_hooks(held, Failed("boom"))

    assert reload(task).state == TaskState.FAILED.value


def test_a_cron_given_in_flight_outlives_a_failure(  # X50
    worker: Worker, ask: Ask, hooks: HookRecorder
) -> None:
    task = ask(1, key="k")
    held = worker.claim_one()
    ask(2, key="k", cron=HOURLY)

    worker.end_and_call_hooks(held, Failed("boom"))

    row = reload(task)
    assert (row.state, row.due_at, row.input) == (TaskState.PENDING.value, at(9), 2)
    assert hooks.calls == [("failed", 0)]
    assert Task.objects.count() == 1


def test_a_delay_asked_for_in_flight_is_kept(  # X51, D4
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask(1, key="k")
    held = worker.claim_one()
    ask(2, key="k", after=3600)

    clock.advance(10)
    worker.end(held)

    assert due_of(task) == at(9)
    assert worker.claim() == []


def test_a_retry_waits_for_the_delay_of_a_request_in_flight(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask(key="k", retry=Retry(3, 1, 1))
    held = worker.claim_one()
    ask(key="k", after=30, retry=Retry(3, 1, 1))

    worker.end_and_call_hooks(held, Failed("boom"))

    assert due_of(task) == clock.now + timedelta(seconds=30)


def test_a_task_that_requests_its_own_key_runs_once_more_each_time(  # X52
    worker: Worker, ask: Ask, body: Recorder
) -> None:
    def again(fire: Fire) -> object:
        return ask(2, key="k")

    body.answers = {1: again}
    task = ask(1, key="k")

    assert [worker.run_due() for _ in range(3)] == [1, 1, 0]
    assert body.inputs == [1, 2]
    assert reload(task).runs == 2


def test_a_task_that_requests_itself_without_end_is_seen_in_the_log_and_in_its_row(  # X52
    worker: Worker, ask: Ask, body: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    body.always = lambda fire: ask(key="k")
    task = ask(key="k")

    with caplog.at_level(logging.INFO, logger="scheduler.engine.finish"):
        assert [worker.run_due() for _ in range(3)] == [1, 1, 1]

    told = [(record.__dict__["action"], record.__dict__["task"]) for record in caplog.records]
    assert told == [("rerun", task)] * 3
    row = reload(task)
    assert (row.runs, row.state) == (3, TaskState.PENDING.value)


def test_a_debounce_runs_once_after_the_last_request(  # X53
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    for number in range(100):
        task = ask(number, key="k", after=30)
        assert worker.claim() == []
        clock.advance(1)

    clock.advance(28.9)
    assert worker.claim() == []
    clock.advance(0.1)
    held = worker.claim_one()
    worker.end(held)

    assert held.input == 99
    assert outcomes_of(task) == [Outcome.SUCCEEDED]


def test_a_request_overwrites_what_a_waiting_task_waits_for(  # X54, D14
    worker: Worker, ask: Ask
) -> None:
    a, b = ask("a"), ask("b")
    task = ask(key="k", depends_on=[a])

    ask(key="k", depends_on=[b])
    assert set(Dependency.objects.values_list("task", "dependency")) == {(task, b)}
    ask(key="k")

    assert Dependency.objects.count() == 0
    row = reload(task)
    assert (row.waits_for, row.ready) == (0, True)


def test_a_request_clears_the_retry_policy(worker: Worker, ask: Ask) -> None:  # D14
    task = ask(key="k", retry=Retry(3, 1, 1))

    ask(key="k")

    assert reload(task).retry is None


def test_a_coalescing_request_in_flight_changes_nothing(worker: Worker, ask: Ask) -> None:  # D8
    task = ask(1, key="k")
    held = worker.claim_one()
    before = Task.objects.values().get()

    assert ask(2, key="k", coalesce=True) == task

    assert Task.objects.values().get() == before
    worker.end(held)
    assert worker.claim() == []


def test_a_request_for_a_quarantined_key_is_stored_and_not_run(  # decision 23
    worker: Worker, ask: Ask
) -> None:
    task = ask(1, key="k")
    Task.objects.update(
        state=TaskState.QUARANTINED.value, reason=Reason.CRASHED.value, ready=False, due_at=None
    )

    assert ask(2, key="k") == task

    row = reload(task)
    assert (row.state, row.input) == (TaskState.QUARANTINED.value, 2)
    assert worker.claim() == []


def test_an_empty_text_is_a_key_and_no_key_is_none(worker: Worker, ask: Ask) -> None:
    assert ask(key="") == ask(key="")
    assert ask() != ask()


def test_a_delayed_request_can_be_pulled_forward(worker: Worker, ask: Ask) -> None:
    ask(key="k", after=3600)
    ask(key="k")

    assert len(worker.claim()) == 1


def test_a_failure_of_a_cron_drops_the_extra_run_and_keeps_the_input(  # D9
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask(1, key="k", cron=HOURLY)
    clock.set(at(9))
    held = worker.claim_one()
    ask(2, key="k")

    worker.end_and_call_hooks(held, Failed("boom"))

    row = reload(task)
    assert (row.due_at, row.input, row.dropped) == (at(10), 2, 1)
    assert Run.objects.get().dropped_request is True
