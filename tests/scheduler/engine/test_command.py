"""`manage.py runscheduler`, called in this process."""

import threading
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from scheduler import public
from scheduler.models import Runner, Task
from scheduler.registry import REGISTRY
from scheduler.rules.fire import Fire
from scheduler.rules.states import TaskState
from tests.scheduler.make import Recorder, make_kind, reload

pytestmark = [pytest.mark.concurrency, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def body() -> Recorder:
    found = Recorder()
    REGISTRY.add(make_kind("demo", found))
    return found


def run(*arguments: str) -> str:
    told = StringIO()
    call_command("runscheduler", *arguments, stdout=told)
    return told.getvalue()


def state_of(task: int) -> str:
    return reload(task).state


def test_once_runs_everything_that_is_due_and_leaves(body: Recorder) -> None:
    due = [public.request("demo", input=number) for number in range(10)]
    later = public.request("demo", after=3600)

    told = run("--once", "--name", "night shift")

    assert told == "Runner night shift takes tasks with 4 threads.\n"
    assert {state_of(task) for task in due} == {TaskState.FINISHED.value}
    assert state_of(later) == TaskState.PENDING.value
    assert Runner.objects.get().stopped_at is not None


def test_until_idle_runs_what_becomes_due_meanwhile(body: Recorder) -> None:
    first = public.request("demo")
    last = public.request("demo", depends_on=[first])

    run("--until-idle")

    assert state_of(last) == TaskState.FINISHED.value


def test_only_the_named_queues_are_served(body: Recorder) -> None:
    mine = public.request("demo", queue="a")
    other = public.request("demo", queue="b")

    run("--once", "--queues", "a, c")

    assert (state_of(mine), state_of(other)) == ("finished", "pending")
    assert Runner.objects.get().queues == ["a", "c"]


def test_the_start_registers_what_code_declared_and_sets_aside_what_is_unreadable(
    body: Recorder,
) -> None:
    public.recurring("demo", key="daily", cron="0 4 * * *", run_on_startup=True)
    broken = public.request("demo", key="broken", cron="0 4 * * *")
    Task.objects.filter(pk=broken).update(cron="61 * * * *")

    run("--once")

    assert len(body.fires) == 1
    assert reload(Task.objects.get(key="daily").pk).state == TaskState.PENDING.value
    assert state_of(broken) == TaskState.QUARANTINED.value


def test_bodies_run_beside_each_other_in_threads_of_their_own(body: Recorder) -> None:
    together = threading.Barrier(3, timeout=10)

    def meet(fire: Fire) -> object:
        together.wait()
        return threading.current_thread().name

    body.always = meet
    tasks = [public.request("demo") for _ in range(3)]

    run("--once", "--workers", "3")

    assert sorted(str(reload(task).result) for task in tasks) == [
        "worker-1",
        "worker-2",
        "worker-3",
    ]


@pytest.mark.parametrize("workers", ["0", "-1", "257"])
def test_a_senseless_number_of_threads_is_refused(body: Recorder, workers: str) -> None:
    with pytest.raises(CommandError, match="between 1 and 256"):
        run("--once", "--workers", workers)

    assert Runner.objects.count() == 0


def test_a_hook_is_called_before_the_runner_leaves() -> None:
    told: list[tuple[int, str]] = []

    def fail(fire: Fire) -> object:
        raise RuntimeError("no disk")

    @public.kind("demo", on_failed=lambda fire, count, error: told.append((count, error)))
    def body(fire: Fire) -> object:
        return fail(fire)

    task = public.request("demo", now=timezone.now())

    run("--once")

    assert told == [(0, "RuntimeError: no disk")]
    assert (state_of(task), reload(task).hook_run) == (TaskState.FAILED.value, None)
