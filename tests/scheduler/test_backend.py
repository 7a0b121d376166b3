"""The `django.tasks` interface, through the engine: enqueue, claim, execute, finish, result."""

import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.apps import apps
from django.core.exceptions import SuspiciousOperation
from django.core.management import call_command
from django.db import connection, transaction
from django.utils import timezone
from django_tasks import TaskResult, TaskResultStatus, default_task_backend, signals, task_backends
from django_tasks.checks import check_tasks
from django_tasks.exceptions import InvalidTaskError, TaskResultDoesNotExist, TaskResultMismatch

from scheduler import backend, public
from scheduler.backend import SchedulerBackend
from scheduler.backend.results import KIND, NotRunError, RunnerLostError
from scheduler.engine import reap
from scheduler.engine.prune import prune
from scheduler.models import Run, Task
from scheduler.registry import REGISTRY, Kind
from tests.clock import ManualClock
from tests.scheduler import functions
from tests.scheduler.make import Worker, make_kind, make_runner, reload

pytestmark = pytest.mark.django_db
RETRYING = {
    "default": {
        "BACKEND": "scheduler.backend.SchedulerBackend",
        "OPTIONS": {"retry": {"times": 3, "min": 10, "max": 60}},
    }
}


@pytest.fixture(autouse=True)
def calls() -> Iterator[list[object]]:
    functions.CALLS.clear()
    yield functions.CALLS
    functions.CALLS.clear()


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Worker:
    """A runner that knows the functions, on a clock that all share."""
    backend.register()
    clock = ManualClock()
    monkeypatch.setattr(timezone, "now", clock)
    return Worker(clock)


def test_a_function_is_enqueued_run_and_its_result_read(worker: Worker) -> None:
    result = functions.add.enqueue(1, right=2)
    enqueued = worker.clock.now
    assert (result.status, result.attempts, result.is_finished) == ("READY", 0, False)
    assert (result.enqueued_at, result.started_at) == (enqueued, None)
    assert (result.args, result.kwargs, result.backend) == ([1], {"right": 2}, "default")

    worker.clock.advance(5)
    worker.run_due()
    result.refresh()

    assert (result.status, result.return_value, result.attempts) == ("SUCCESSFUL", 3, 1)
    assert (result.enqueued_at, result.started_at) == (enqueued, worker.clock.now)
    assert (result.last_attempted_at, result.finished_at) == (worker.clock.now, worker.clock.now)
    assert (result.worker_ids, result.errors) == (["runner-a"], [])


def test_a_result_is_the_same_read_again(worker: Worker) -> None:
    result = functions.add.using(priority=7, run_after=worker.clock.now + timedelta(hours=1))
    enqueued = result.enqueue(1)

    assert default_task_backend.get_result(enqueued.id) == enqueued


def test_enqueueing_costs_no_more_than_a_request_and_a_result_two_reads(
    worker: Worker, django_assert_max_num_queries: Any
) -> None:
    # To look for the key and to insert, with a savepoint around and, on PostgreSQL, the news.
    with django_assert_max_num_queries(5 if _is_postgres() else 4):
        result = functions.add.enqueue(1)
    with django_assert_max_num_queries(2):
        result.refresh()


def _is_postgres() -> bool:
    return connection.vendor == "postgresql"


def test_a_coroutine_runs_to_its_end(worker: Worker) -> None:
    result = functions.add_slowly.enqueue(20, 22)

    worker.run_due()

    assert default_task_backend.get_result(result.id).return_value == 42


def test_run_after_is_waited_for(worker: Worker, calls: list[object]) -> None:
    functions.add.using(run_after=worker.clock.now + timedelta(minutes=10)).enqueue(1)

    worker.clock.advance(599)
    assert worker.run_due() == 0
    worker.clock.advance(1)
    assert worker.run_due() == 1
    assert calls == [(1, 0)]


def test_the_highest_priority_goes_first_and_bounds_are_kept(
    worker: Worker, calls: list[object]
) -> None:
    for priority in (-100, 100, 0):
        functions.add.using(priority=priority).enqueue(priority)
    with pytest.raises(InvalidTaskError, match="between -100 and 100"):
        functions.add.using(priority=101)

    worker.run_due()

    assert calls == [(100, 0), (0, 0), (-100, 0)]


def test_a_queue_is_kept_and_bounded_by_the_settings(worker: Worker, settings: Any) -> None:
    result = functions.add.using(queue_name="mail").enqueue(1)
    assert reload(int(result.id)).queue == "mail"

    settings.TASKS = {"default": RETRYING["default"] | {"QUEUES": ["default"]}}
    with pytest.raises(InvalidTaskError, match="Queue 'mail' is not valid"):
        functions.add.using(queue_name="mail")


def test_a_queue_name_that_no_column_holds_is_refused(worker: Worker) -> None:
    with pytest.raises(InvalidTaskError, match="1 to 100 characters"):
        functions.add.using(queue_name="q" * 101).enqueue(1)
    assert not Task.objects.exists()


def test_a_failure_is_told_with_its_class_and_traceback(worker: Worker) -> None:
    result = functions.fail.enqueue("first: second\nTypeError: third")

    worker.run_due()
    result.refresh()

    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 1)
    (error,) = result.errors
    assert error.exception_class is ValueError
    assert "raise ValueError(text)\nValueError: first: second" in error.traceback
    with pytest.raises(ValueError, match="Task failed"):
        _ = result.return_value


def test_a_context_counts_attempts_and_each_failure_is_kept(worker: Worker, settings: Any) -> None:
    settings.TASKS = RETRYING
    result = functions.attempts.enqueue("demo")

    for delay in (10, 20, 0):
        worker.run_due()
        worker.clock.advance(delay)
    result.refresh()

    assert result.return_value == ["demo", 3, result.id, "RUNNING"]
    assert result.worker_ids == ["runner-a"] * 3
    assert [error.exception_class for error in result.errors] == [ConnectionError] * 2


def test_between_attempts_a_call_is_ready(worker: Worker, settings: Any) -> None:
    settings.TASKS = RETRYING
    result = functions.attempts.enqueue("demo")

    worker.run_due()
    result.refresh()

    assert (result.status, result.attempts, len(result.errors)) == ("READY", 1, 1)
    assert result.finished_at is None


def test_a_permanent_error_ends_a_call_that_may_retry(worker: Worker, settings: Any) -> None:
    settings.TASKS = RETRYING
    result = functions.give_up.enqueue()

    worker.run_due()
    result.refresh()

    assert (result.status, result.errors[0].exception_class) == ("FAILED", public.PermanentError)


def test_a_return_value_that_is_not_json_fails_for_good(
    worker: Worker, settings: Any, calls: list[object]
) -> None:
    settings.TASKS = RETRYING
    result = functions.speak_no_json.enqueue()

    worker.run_due()
    result.refresh()

    assert (result.status, calls) == ("FAILED", ["spoke"])
    assert "the return value: Unsupported type: <class 'datetime.datetime'>" in (
        result.errors[0].traceback
    )


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        pytest.param({1, 2}, "Unsupported type: <class 'set'>", id="a set"),
        pytest.param(float("nan"), "not JSON", id="not a number"),
        pytest.param({1: 2}, "a key is a text in JSON, not 1", id="a key that is a number"),
        pytest.param([({"a": {None: 1}},)], "a key is a text in JSON, not None", id="a deep key"),
        pytest.param("a\0b", "NUL", id="NUL"),
        pytest.param("\ud800", "surrogate", id="half a surrogate pair"),
        pytest.param("x" * 300_000, "bytes as JSON", id="too large"),
    ],
)
def test_arguments_that_json_would_change_are_refused(
    worker: Worker, argument: object, said: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        functions.add.enqueue(argument)  # type: ignore[arg-type]  # that is the point
    assert not Task.objects.exists()


def test_a_call_is_part_of_the_transaction(worker: Worker) -> None:
    with transaction.atomic():
        functions.add.enqueue(1)
        transaction.set_rollback(True)

    assert not Task.objects.exists()


def test_a_cancelled_call_has_failed_and_says_so(worker: Worker) -> None:
    result = functions.add.enqueue(1)

    public.cancel(int(result.id))
    result.refresh()

    assert (result.status, result.attempts) == ("FAILED", 0)
    assert result.errors[0].exception_class is NotRunError
    assert result.errors[0].traceback == "cancelled"


def test_a_run_lost_with_its_runner_is_an_error_and_the_next_counts(worker: Worker) -> None:
    result = functions.add.enqueue(1)
    worker.claim_one()
    result.refresh()
    assert (result.status, result.worker_ids) == ("RUNNING", ["runner-a"])

    successor = Worker(worker.clock, make_runner("runner-b"))
    reaper = reap.Reaper(successor.runner.pk)
    reaper.scan(at=0.0, now=worker.clock.now)
    reaper.scan(at=31.0, now=worker.clock.now)
    result.refresh()

    assert (result.status, result.attempts) == ("READY", 1)
    assert result.errors[0].exception_class is RunnerLostError


@pytest.mark.parametrize("missing", ["0", "-1", "x", "", "9" * 30, "\u0663"])
def test_an_id_that_was_never_given_is_no_result(missing: str) -> None:
    with pytest.raises(TaskResultDoesNotExist):
        default_task_backend.get_result(missing)


def test_a_task_of_another_kind_is_no_result(worker: Worker) -> None:
    REGISTRY.add(make_kind("other"))
    other = public.request("other")

    with pytest.raises(TaskResultDoesNotExist):
        default_task_backend.get_result(str(other))


def test_a_result_of_another_function_does_not_match(worker: Worker) -> None:
    result = functions.add.enqueue(1)

    assert functions.add.get_result(result.id) == result
    with pytest.raises(TaskResultMismatch):
        functions.fail.get_result(result.id)


@pytest.mark.parametrize(
    ("input", "said"),
    [
        pytest.param(None, "names no function", id="nothing"),
        pytest.param({"args": []}, "names no function", id="no name"),
        pytest.param(
            {"task": "tests.scheduler.functions.not_a_task"}, "which is not a task", id="no task"
        ),
        pytest.param({"task": "scheduler.no.such"}, "No module named", id="no module"),
    ],
)
def test_a_row_that_names_no_function_fails_and_runs_nothing(
    worker: Worker, input: object, said: str
) -> None:
    task = public.request(KIND, input=input)

    worker.run_due()

    assert said in reload(task).last_error


def test_a_module_of_no_installed_app_is_not_imported(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Printing a poem is what its import does.
    monkeypatch.delitem(sys.modules, "this", raising=False)
    task = public.request(KIND, input={"task": "this.d"})

    worker.run_due()

    said = "'this.d' is in no installed app; put the function into a module of an app"
    assert said in reload(task).last_error
    assert (reload(task).state, "this" in sys.modules) == ("failed", False)


def test_a_row_that_names_something_else_is_suspicious(worker: Worker) -> None:
    task = public.request(KIND, input={"task": "tests.scheduler.functions.not_a_task"})

    with pytest.raises(SuspiciousOperation):
        default_task_backend.get_result(str(task))


def test_results_are_pruned_with_the_tasks_and_their_runs(worker: Worker, settings: Any) -> None:
    result = functions.add.enqueue(1)
    worker.run_due()

    prune(now=worker.clock.advance(days=settings.KANADE_TASK_RETENTION_DAYS))
    assert default_task_backend.get_result(result.id).return_value == 1
    prune(now=worker.clock.advance(1))

    with pytest.raises(TaskResultDoesNotExist):
        default_task_backend.get_result(result.id)
    assert not Run.objects.exists()


def test_listeners_hear_of_each_step_once(worker: Worker) -> None:
    heard: list[tuple[str, str]] = []

    def listen(name: str) -> Any:
        return lambda task_result, **_: heard.append((name, str(task_result.status)))

    listeners = {name: listen(name) for name in ("task_enqueued", "task_started", "task_finished")}
    for name, listener in listeners.items():
        getattr(signals, name).connect(listener)
    try:
        functions.add.enqueue(1)
        functions.fail.enqueue("x")
        worker.run_due()
    finally:
        for name, listener in listeners.items():
            getattr(signals, name).disconnect(listener)

    assert heard == [
        ("task_enqueued", "READY"),
        ("task_enqueued", "READY"),
        ("task_started", "RUNNING"),
        ("task_finished", "SUCCESSFUL"),
        ("task_started", "RUNNING"),
        ("task_finished", "FAILED"),
    ]


def test_the_flags_say_what_it_does() -> None:
    assert isinstance(task_backends["default"], SchedulerBackend)
    assert SchedulerBackend.supports_defer
    assert SchedulerBackend.supports_async_task
    assert SchedulerBackend.supports_get_result
    assert SchedulerBackend.supports_priority


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        pytest.param({}, [], id="none"),
        pytest.param({"retry": {"times": 3}}, [], id="a policy"),
        pytest.param({"retry": {"times": -1}}, ["scheduler.E002"], id="a bad number"),
        pytest.param({"retry": {"often": 3}}, ["scheduler.E002"], id="a bad name"),
        pytest.param({"retries": 3}, ["scheduler.E001"], id="an unknown option"),
    ],
)
def test_the_system_check_finds_bad_options(
    settings: Any, options: dict[str, object], ids: list[str]
) -> None:
    settings.TASKS = {"default": RETRYING["default"] | {"OPTIONS": options}}

    assert [message.id for message in check_tasks()] == ids


def test_runners_know_the_kind_from_the_start() -> None:
    apps.get_app_config("scheduler").ready()

    assert REGISTRY.kinds[KIND] == Kind(KIND, backend.body)


@pytest.mark.concurrency
@pytest.mark.django_db(transaction=True)
def test_the_command_runs_functions_and_coroutines_in_its_threads() -> None:
    backend.register()
    results: list[TaskResult[Any]] = [functions.add.enqueue(n, 1) for n in range(5)]
    results += [functions.add_slowly.enqueue(n, 1) for n in range(5)]

    call_command("runscheduler", "--until-idle", "--workers", "2")
    for result in results:
        result.refresh()

    assert [result.return_value for result in results] == [1, 2, 3, 4, 5] * 2


def test_an_event_loop_enqueues_and_reads_results() -> None:
    backend.register()

    async def use() -> tuple[str, object]:
        result = await functions.add.aenqueue(3, 4)
        again = await functions.add.aget_result(result.id)
        await again.arefresh()
        return result.id, again.status

    result_id, status = async_to_sync(use)()

    assert (functions.add.get_result(result_id).args, status) == ([3, 4], "READY")
