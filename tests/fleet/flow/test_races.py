"""Two at once: whoever comes second finds it done. Real threads on real connections."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest
from django.db import connection

from fleet.flow.dispatch import NothingToDispatchError, dispatch
from fleet.flow.filling import fill_chunk
from fleet.flow.plans import Chosen, DispatchPlan
from fleet.flow.tick import look_at, tick
from fleet.models import (
    Command,
    Evaluation,
    Execution,
    Freeze,
    Occurrence,
    Origin,
    Schedule,
    ScheduleAgent,
    TickMark,
)
from fleet.rules.targets import Target
from tests.fleet.make import NOW, make_agent, make_job, make_schedule, make_schedule_agent

pytestmark = [pytest.mark.concurrency, pytest.mark.django_db(transaction=True)]
RUNNERS = 4
T = TypeVar("T")


@pytest.fixture(autouse=True)
def single_rows() -> None:
    """The rows of migrations, which are flushed where transactions are real."""
    Freeze.objects.get_or_create(pk=1)
    TickMark.objects.get_or_create(pk=1)


def at_once(act: Callable[[], T]) -> list[T]:
    """What `act` answers in several threads that start together."""
    barrier = threading.Barrier(RUNNERS)

    def run() -> T:
        try:
            barrier.wait(timeout=30)
            return act()
        finally:
            connection.close()

    with ThreadPoolExecutor(RUNNERS) as pool:
        return [future.result() for future in [pool.submit(run) for _ in range(RUNNERS)]]


def test_29_one_nominal_time_fires_once_however_many_look() -> None:
    schedule = make_schedule(when={"calendar": {"at": "12:00"}}, tz="utc")
    Schedule.objects.filter(pk=schedule.pk).update(next_fire_at=NOW)
    make_agent()
    fired = at_once(lambda: look_at(schedule.pk, now=NOW))
    assert sorted(fired) == [0, 0, 0, 1]
    assert (Occurrence.objects.count(), Execution.objects.count()) == (1, 1)


def test_16_overlapping_ticks_send_each_agent_one_command() -> None:
    for _ in range(3):
        schedule = make_schedule()
        for _ in range(5):
            make_schedule_agent(schedule, make_agent())
    at_once(lambda: tick(now=NOW))
    assert Command.objects.count() == 15
    assert Execution.objects.count() == 3
    assert not ScheduleAgent.objects.exclude(due_at=None).exists()
    assert Evaluation.objects.filter(until=None).count() == 3


def test_two_schedules_that_want_the_same_agent_do_not_both_get_it() -> None:
    job, agent = make_job(), make_agent()
    assert job.current is not None
    schedules = [make_schedule(job=job) for _ in range(RUNNERS)]
    plans = [
        DispatchPlan(
            job.current,
            Origin.SCHEDULE,
            "scheduler",
            Target(all=True),
            selection=Chosen((agent.pk,)),
            schedule=schedule,
            reconciles=True,
        )
        for schedule in schedules
    ]

    def send() -> bool:
        try:
            dispatch(plans.pop(), now=NOW)
        except NothingToDispatchError:
            return False
        return True

    assert sorted(at_once(send)) == [False, False, False, True]
    assert (Command.objects.count(), Execution.objects.count()) == (1, 1)


def test_f19_a_large_execution_filled_by_several_is_filled_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fleet.flow.filling.CHUNK", 5)
    for _ in range(23):
        make_agent()
    job = make_job()
    assert job.current is not None
    plan = DispatchPlan(job.current, Origin.MANUAL, "alice", Target(all=True))
    execution = dispatch(plan, now=NOW)

    def fill() -> None:
        while fill_chunk(execution.pk, now=NOW):
            pass

    at_once(fill)
    execution.refresh_from_db()
    assert (execution.state, execution.planned) == ("live", 23)
    assert Command.objects.values("agent").distinct().count() == Command.objects.count() == 23
