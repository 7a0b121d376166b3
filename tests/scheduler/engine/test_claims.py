"""Who gets a task, in which order, and what a loser sees: X09 to X16."""

from typing import Any

import pytest
from django.db import IntegrityError, connection

from scheduler import public
from scheduler.engine import claim, enqueue
from scheduler.models import Queue, Run, Task
from scheduler.registry import REGISTRY, Kind
from scheduler.rules.columns import Changes
from scheduler.rules.fire import NOTHING, Fire, PermanentError
from scheduler.rules.orders import make_order
from scheduler.rules.outcomes import Failed
from scheduler.rules.states import Outcome, Reason, TaskState
from tests.clock import ManualClock
from tests.scheduler.engine.conftest import Ask
from tests.scheduler.make import (
    Recorder,
    Worker,
    make_kind,
    make_runner,
    outcomes_of,
    reload,
)

pytestmark = pytest.mark.django_db


def test_of_two_runners_one_gets_the_task(  # X09
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    ask()
    other = Worker(clock, make_runner("runner-b"))

    assert (len(worker.claim()), len(other.claim())) == (1, 0)


def test_two_runners_share_the_tasks_in_order(  # X10
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    tasks = [ask(number) for number in range(20)]
    other = Worker(clock, make_runner("runner-b"))

    taken = [[one.task_id for one in runner.claim(5)] for runner in (worker, other) * 2]

    assert taken == [tasks[0:5], tasks[5:10], tasks[10:15], tasks[15:20]]


def test_priority_goes_before_age_and_age_before_id(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    late = ask(at=clock.now)
    early = ask(at=clock.now.replace(hour=7))
    urgent = ask(priority=5)
    patient = ask(priority=-5, at=clock.now.replace(hour=6))

    assert [one.task_id for one in worker.claim()] == [urgent, early, late, patient]


def test_a_task_due_exactly_now_is_taken(  # X27
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    ask(after=60)
    clock.advance(60)

    assert len(worker.claim()) == 1


def test_a_kind_that_is_not_known_here_is_left_alone(  # X68
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    REGISTRY.add(make_kind("newer"))
    before, strange = ask(1), public.request("newer", now=clock.now)
    after = ask(2)
    worker.kinds = ["demo"]

    assert [one.task_id for one in worker.claim()] == [before, after]
    row = reload(strange)
    assert (row.state, row.attempt) == (TaskState.PENDING.value, 0)


def test_a_body_that_cannot_read_an_old_input_fails_alone_and_says_so(  # X70
    worker: Worker, ask: Ask, body: Recorder
) -> None:
    body.always = read_path
    tasks = [
        ask(value) for value in ({"path": "a"}, {"name": "as it was stored once"}, {"path": "b"})
    ]

    worker.run_due()

    states = [reload(task).state for task in tasks]
    assert states == [TaskState.FINISHED.value, TaskState.FAILED.value, TaskState.FINISHED.value]
    assert reload(tasks[1]).last_error == "KeyError: 'path'"
    assert Run.objects.get(task_id=tasks[1]).error == "KeyError: 'path'"


def read_path(fire: Fire) -> object:
    given: Any = fire.input
    return given["path"]


def test_queues_divide_the_work(clock: ManualClock, worker: Worker, ask: Ask) -> None:
    ask("a", queue="a")
    ask("b", queue="b")

    wish = claim.Wish(worker.runner.pk, 10, ["demo"], queues=["b"])

    assert [one.input for one in claim.claim(wish, now=clock.now)] == ["b"]


def test_nothing_is_taken_from_a_paused_queue_until_it_is_resumed(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    ask(queue="slow")
    public.pause_queue("slow", now=clock.now)
    assert worker.claim() == []

    public.resume_queue("slow", now=clock.now)

    assert len(worker.claim()) == 1


def test_a_limited_queue_runs_no_more_than_its_limit_on_all_runners(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    for number in range(5):
        ask(number, queue="narrow")
    public.limit_queue("narrow", 2, now=clock.now)
    other = Worker(clock, make_runner("runner-b"))

    assert worker.claim() == []
    first = claim.claim_limited(worker.wish(1), "narrow", now=clock.now)
    second = claim.claim_limited(other.wish(9), "narrow", now=clock.now)
    third = claim.claim_limited(worker.wish(9), "narrow", now=clock.now)

    assert [len(first), len(second), len(third)] == [1, 1, 0]
    worker.end(first[0])
    assert len(claim.claim_limited(worker.wish(9), "narrow", now=clock.now)) == 1


def test_a_limit_can_be_taken_away(clock: ManualClock, worker: Worker, ask: Ask) -> None:
    ask(queue="narrow")
    public.limit_queue("narrow", 1, now=clock.now)
    public.limit_queue("narrow", None, now=clock.now)

    assert Queue.objects.get().most_running is None
    assert len(worker.claim()) == 1


def test_a_first_request_that_loses_the_race_takes_the_winners_row(  # X13
    clock: ManualClock, worker: Worker, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = make_order("demo", key="k", input=2, now=clock.now)
    winner = ask(1, key="k")
    # The loser looked before the winner committed.
    look, blind = enqueue.live_task, iter([True])
    monkeypatch.setattr(
        enqueue,
        "live_task",
        lambda kind, key: None if next(blind, False) else look(kind, key),
    )

    assert enqueue.enqueue(order, now=clock.now) == winner
    assert Task.objects.count() == 1
    assert reload(winner).input == 2


def test_the_database_refuses_a_second_live_row_of_a_key(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    ask(key="k")

    with pytest.raises(IntegrityError):
        Task.objects.create(
            kind="demo", key="k", due_at=clock.now, created_at=clock.now, updated_at=clock.now
        )


def test_the_same_key_of_two_kinds_is_two_tasks(  # X14
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    REGISTRY.add(make_kind("other"))
    first = ask("demo's", key="1,2")

    second = public.request("other", key="1,2", input="other's", now=clock.now)

    assert first != second
    assert (reload(first).input, reload(second).input) == ("demo's", "other's")


def test_a_request_before_the_claim_is_what_runs(  # X15
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    ask("old", key="k")
    ask("new", key="k")

    assert worker.claim_one().input == "new"
    assert worker.claim() == []


def test_a_request_after_the_claim_runs_next(  # X15
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    ask("old", key="k")
    held = worker.claim_one()
    ask("new", key="k")

    assert worker.claim() == []
    worker.end(held)
    assert (held.input, worker.claim_one().input) == ("old", "new")


def test_a_request_that_read_before_the_claim_sees_that_it_lost(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask("old", key="k")
    stale = reload(task)
    worker.claim_one()

    assert enqueue.compare_and_set(stale, {"input": "new"}, now=clock.now) is False

    row = reload(task)
    assert (row.input, row.state) == ("old", TaskState.RUNNING.value)


def test_a_request_that_read_before_another_request_sees_that_it_lost(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask("old", key="k")
    stale = reload(task)
    ask("new", key="k")

    assert enqueue.compare_and_set(stale, {"input": "older"}, now=clock.now) is False

    assert reload(task).input == "new"


def test_a_request_that_read_before_a_whole_run_sees_that_it_lost(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask(key="k", cron="0 * * * *", run_on_startup=True)
    stale = reload(task)
    worker.end(worker.claim_one())
    after = reload(task)
    assert (after.state, after.generation) == (stale.state, stale.generation)

    changes: Changes = {"due_at": stale.due_at, "ready": True}
    assert enqueue.compare_and_set(stale, changes, now=clock.now) is False

    assert reload(task).due_at == after.due_at


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), RuntimeError("x")])
def test_whatever_a_body_raises_is_a_failure(  # X16
    clock: ManualClock, worker: Worker, body: Recorder, ask: Ask, error: BaseException
) -> None:
    def raising(fire: Fire) -> object:
        raise error

    body.always = raising
    task = ask()

    worker.run_due_and_hooks()

    row = reload(task)
    assert (row.state, row.reason) == (TaskState.FAILED.value, Reason.NO_RETRY.value)
    assert type(error).__name__ in row.last_error
    assert outcomes_of(task) == [Outcome.FAILED]


def test_a_hook_that_raises_undoes_nothing(  # X16
    clock: ManualClock, body: Recorder
) -> None:
    def broken(fire: Fire, count: int, error: str) -> None:
        raise SystemExit(count)

    REGISTRY.add(Kind("demo", body, on_failed=broken))
    worker = Worker(clock)
    task = public.request("demo", now=clock.now)

    worker.end_and_call_hooks(worker.claim_one(), Failed("boom"))

    row = reload(task)
    assert (row.state, row.hook_run) == (TaskState.FAILED.value, None)


def test_nothing_leaves_no_row_in_the_history(
    clock: ManualClock, worker: Worker, body: Recorder, ask: Ask
) -> None:
    body.always = lambda fire: NOTHING
    once, daily = ask(), ask(key="k", cron="*/5 * * * *", run_on_startup=True)

    worker.run_due()

    assert (outcomes_of(once), outcomes_of(daily)) == ([], [])
    assert reload(once).state == TaskState.FINISHED.value
    assert reload(daily).state == TaskState.PENDING.value
    assert (reload(once).runs, reload(daily).runs) == (1, 1)


def test_the_result_of_a_body_is_kept(
    clock: ManualClock, worker: Worker, body: Recorder, ask: Ask
) -> None:
    body.always = lambda fire: {"seen": fire.input}
    once, daily = ask(1), ask(2, key="k", cron="*/5 * * * *", run_on_startup=True)

    worker.run_due()

    assert reload(once).result == {"seen": 1}
    assert reload(daily).result == {"seen": 2}


@pytest.mark.parametrize("answer", [object(), {"a": float("nan")}, "\0", "\ud800"])
def test_a_result_that_cannot_be_stored_fails_without_a_retry(
    clock: ManualClock, worker: Worker, body: Recorder, ask: Ask, answer: object
) -> None:
    body.always = lambda fire: answer
    task = ask(retry=public.Retry(3, 0, 0))

    worker.run_due_and_hooks()

    assert (reload(task).state, reload(task).reason) == (
        TaskState.FAILED.value,
        Reason.PERMANENT.value,
    )


def test_an_error_text_is_stored_harmless_on_every_database(
    clock: ManualClock, worker: Worker, body: Recorder, ask: Ask
) -> None:
    def raising(fire: Fire) -> object:
        raise PermanentError("nul \0 half \ud800 bell \a")

    body.always = raising
    task = ask()

    worker.run_due_and_hooks()

    assert reload(task).last_error.endswith("nul \ufffd half \ufffd bell \\x07")


@pytest.mark.skipif(connection.vendor != "postgresql", reason="how PostgreSQL plans")
def test_a_claim_walks_the_ready_tasks_once_whatever_the_statistics_say(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    for number in range(200):
        ask(number, after=60)
    with connection.cursor() as cursor:
        # As the planner remembers it: nobody is ready.
        cursor.execute("ANALYZE scheduler_task")
    clock.advance(60)
    claim.promote(now=clock.now)
    explained: list[str] = []

    def explain(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "UPDATE scheduler_task" in sql and not explained:
            with connection.cursor() as cursor:
                explained.append(sql)
                cursor.execute(f"EXPLAIN {sql}", params)
                explained.extend(row[0] for row in cursor.fetchall())
        return execute(sql, params, many, context)

    with connection.execute_wrapper(explain):
        assert len(worker.claim()) == 100

    assert sum("tasks_ready" in line for line in explained[1:]) == 1
