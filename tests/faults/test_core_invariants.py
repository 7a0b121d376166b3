"""Each rule that kills are judged by finds the one broken row."""

import pytest
from django.db import connection

from scheduler import public
from scheduler.models import Dependency, Run, Task
from scheduler.registry import REGISTRY
from scheduler.rules.states import Outcome
from tests.clock import START, ManualClock
from tests.faults.core_invariants import NEVER, held, overlaps, unfinished, violations
from tests.scheduler.make import Worker, make_kind, only_kinds

pytestmark = pytest.mark.django_db
# What breaks a rule, in SQL: {task} ran once, {waiter} waits for {other}.
BREAKS = {
    "waits for what is over": "UPDATE scheduler_task SET state = 'failed', due_at = NULL,"
    " ready = false, ended_at = updated_at WHERE id = {other}",
    "is over and still waits": "UPDATE scheduler_task SET state = 'failed', ended_at = updated_at"
    " WHERE id = {waiter}",
    "counts its edges wrongly": "UPDATE scheduler_task SET waits_for = 2 WHERE id = {waiter}",
    "finished without history": "UPDATE scheduler_task SET state = 'finished', due_at = NULL,"
    " ready = false, ended_at = updated_at WHERE id = {other}",
    "runs under a lease whose end is written": "UPDATE scheduler_task SET state = 'running',"
    " runner_id = 1, beat_at = updated_at, ended_at = NULL, runs = 2 WHERE id = {task}",
    "succeeded twice for one occurrence": "UPDATE scheduler_run SET occurrence_at = ended_at",
    "has history under another name": "UPDATE scheduler_run SET key = 'other'",
    "ended before it began": "UPDATE scheduler_run SET ended_at = '2000-01-01 00:00:00'",
    "was claimed more or less often than it ran": "UPDATE scheduler_task SET runs = 7"
    " WHERE id = {task}",
}


@pytest.fixture
def tasks() -> dict[str, int]:
    with only_kinds():
        REGISTRY.add(make_kind("demo"))
        clock = ManualClock()
        task = public.request("demo", key="task", now=clock.now)
        worker = Worker(clock)
        worker.end(worker.claim_one())
        Run.objects.create(
            task_id=task,
            kind="demo",
            key="task",
            lease_token=0,
            attempt=1,
            outcome=Outcome.SUCCEEDED,
            ended_at=START,
        )
        Task.objects.update(runs=2)
        other = public.request("demo", key="other", after=60, now=clock.now)
        waiter = public.request("demo", key="waiter", depends_on=[other], now=clock.now)
        return {"task": task, "other": other, "waiter": waiter}


def test_sound_tables_break_no_rule(tasks: dict[str, int]) -> None:
    assert violations() == {}
    assert Dependency.objects.count() == 1


@pytest.mark.parametrize("rule", list(NEVER))
def test_a_rule_finds_what_breaks_it(tasks: dict[str, int], rule: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(BREAKS[rule].format(**tasks))

    assert rule in violations()


def test_what_is_not_done_is_named(tasks: dict[str, int]) -> None:
    assert unfinished({"task": "finished", "other": "finished", "lost": "finished"}) == {
        "other": "pending instead of finished",
        "waiter": "pending instead of None",
        "lost": "None instead of finished",
    }
    assert held() == []
    Task.objects.filter(key="other").update(hook_run=1)
    assert held() == ["other"]


def test_two_bodies_of_a_key_at_once_are_found_and_a_killed_one_is_none() -> None:
    lines = ["begin a 1 10", "begin a 2 11", "end a 2 11", "begin narrow-1 1 11"]

    assert overlaps(lines, dead=10) == []
    assert overlaps(lines, dead=None) == ["begin a 1 10 | begin a 2 11"]
    assert overlaps([*lines, "begin narrow-2 1 11"], dead=10) == [
        "begin narrow-1 1 11 | begin narrow-2 1 11"
    ]
