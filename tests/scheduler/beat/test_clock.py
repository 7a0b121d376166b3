"""Celery beat's DatabaseScheduler drives Kanade's ticks; the processes are in test_processes."""

import threading
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connections
from django.utils import timezone
from django_celery_beat.models import PeriodicTask
from django_celery_beat.schedulers import DatabaseScheduler

from kanade.celery import app
from scheduler import public
from scheduler.beat import clock
from scheduler.models import Runner, Task
from scheduler.registry import REGISTRY
from tests.scheduler.make import Recorder, make_kind

database = pytest.mark.django_db


@pytest.fixture
def body() -> Recorder:
    found = Recorder()
    REGISTRY.add(make_kind("demo", found))
    return found


@pytest.fixture
def beat() -> Iterator[Any]:
    """Beat's own scheduler, whose messages are taken at once, in this process."""
    app.conf.task_always_eager = True
    call_command("beattick", "--every", "1")
    long_ago = timezone.now() - timedelta(minutes=1)
    PeriodicTask.objects.update(last_run_at=long_ago)
    yield DatabaseScheduler(app=app, lazy=True)
    app.conf.task_always_eager = False


@pytest.mark.concurrency
@pytest.mark.django_db(transaction=True)
def test_a_tick_of_beat_runs_what_is_due(beat: Any, body: Recorder) -> None:
    due = public.request("demo", input="now")
    public.request("demo", input="later", after=3600)

    beat.tick()

    assert [fire.task_id for fire in body.fires] == [due]
    runner = Runner.objects.get()
    assert (runner.name.startswith("beat@"), runner.stopped_at) == (True, None)


@pytest.mark.concurrency
@pytest.mark.django_db(transaction=True)
def test_a_tick_registers_what_code_declared(beat: Any, body: Recorder) -> None:
    clock._GUEST._loop = None
    public.recurring("demo", key="daily", cron="0 4 * * *")

    beat.tick()

    assert Task.objects.get().key == "daily"


@pytest.mark.concurrency
@pytest.mark.django_db(transaction=True)
def test_two_clocks_fire_once(beat: Any, body: Recorder) -> None:
    tasks = [public.request("demo") for _ in range(60)]
    other = threading.Thread(target=_run_the_other_clock)
    other.start()

    beat.tick()
    other.join(timeout=60)

    assert Counter(fire.task_id for fire in body.fires) == dict.fromkeys(tasks, 1)


def _run_the_other_clock() -> None:
    try:
        call_command("runscheduler", "--until-idle")
    finally:
        connections.close_all()


@database
def test_the_command_makes_one_row_however_often_it_is_called(settings: Any) -> None:
    settings.KANADE_CELERY_QUEUE = "mine"

    call_command("beattick")
    call_command("beattick", "--every", "10")

    row = PeriodicTask.objects.get()
    assert (row.name, row.task, row.enabled) == ("Kanade's ticks", "kanade.tick", True)
    assert (row.interval.every, row.interval.period) == (10, "seconds")
    assert (row.queue, row.expire_seconds) == ("mine", 10)


@database
def test_the_command_removes_the_row() -> None:
    call_command("beattick")

    call_command("beattick", "--remove")
    call_command("beattick", "--remove")

    assert not PeriodicTask.objects.exists()


@database
@pytest.mark.parametrize("every", [0, -1, 61])
def test_a_clock_that_is_too_slow_or_too_fast_is_refused(every: int) -> None:
    with pytest.raises(CommandError, match="between 1 and 60 seconds"):
        call_command("beattick", "--every", str(every))

    assert not PeriodicTask.objects.exists()


@database
def test_an_import_leaves_the_ticks_with_beat() -> None:
    call_command("beattick")

    call_command("importbeat")

    assert PeriodicTask.objects.get().enabled
    assert not Task.objects.exists()
