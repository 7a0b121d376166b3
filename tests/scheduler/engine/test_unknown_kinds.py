"""A runner that knows no kind X leaves X's tasks to one that does."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command

from scheduler import public
from scheduler.engine import reap
from scheduler.models import Run, Task
from scheduler.registry import REGISTRY
from tests.clock import ManualClock
from tests.scheduler.engine.test_processes import PATIENCE, Processes
from tests.scheduler.make import Recorder, Worker, make_kind, make_runner, only_kinds, reload


def untouched(task_id: int) -> bool:
    """Whether nobody ever took it."""
    row = reload(task_id)
    return (row.state, row.attempt, row.runs, row.lease_token) == ("pending", 0, 0, 0)


@pytest.mark.django_db
def test_each_of_two_registries_takes_its_own(clock: ManualClock) -> None:
    ours, theirs = Recorder(), Recorder()
    with only_kinds(make_kind("ours", ours), make_kind("theirs", theirs)):
        mine = public.request("ours", now=clock.now)
        other = public.request("theirs", priority=100, now=clock.now)

    with only_kinds(make_kind("ours", ours)):
        assert Worker(clock, make_runner("a")).run_due() == 1
        assert Worker(clock, make_runner("a again")).run_due() == 0
    assert (reload(mine).state, untouched(other)) == ("finished", True)

    with only_kinds(make_kind("theirs", theirs)):
        assert Worker(clock, make_runner("b")).run_due() == 1
    assert [fire.task_id for fire in theirs.fires] == [other]


@pytest.mark.django_db
def test_a_suspect_of_an_unknown_kind_holds_nobody_up(clock: ManualClock) -> None:
    with only_kinds(make_kind("ours"), make_kind("theirs")):
        other = public.request("theirs", now=clock.now)
        mine = public.request("ours", now=clock.now)
    Task.objects.filter(pk=other).update(suspect=True)

    with only_kinds(make_kind("ours")):
        assert Worker(clock).run_due() == 1

    assert reload(mine).state == "finished"
    assert untouched(other)


@pytest.mark.django_db
def test_a_run_that_was_lost_is_freed_by_a_runner_that_does_not_know_its_kind(
    clock: ManualClock,
) -> None:
    with only_kinds(make_kind("theirs")):
        task = public.request("theirs", now=clock.now)
        Worker(clock, make_runner("gone")).claim_one()

    with only_kinds(make_kind("ours")):
        reaper = reap.Reaper(make_runner("a").pk)
        reaper.scan(at=0.0, now=clock.now)
        assert reaper.scan(at=31.0, now=clock.now) == [task]
        assert Worker(clock, make_runner("b")).run_due() == 0

    assert reload(task).state == "pending"


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    found = Processes(tmp_path)
    yield found
    found.end()


@pytest.mark.concurrency
@pytest.mark.django_db(transaction=True)
def test_two_processes_share_the_work_by_what_they_know(processes: Processes) -> None:
    body = Recorder()
    with only_kinds(make_kind("here", body), make_kind("note")):
        here = [public.request("here") for _ in range(5)]
        there = [public.request("note") for _ in range(5)]

    # This process knows `here`, the program knows `note`.
    REGISTRY.add(make_kind("here", body))
    call_command("runscheduler", "--until-idle", "--name", "this process")
    assert all(untouched(task) for task in there)
    assert processes.start("run", "--until-idle", "--name", "the other").wait(PATIENCE) == 0

    assert {fire.task_id for fire in body.fires} == set(here)
    assert Counter(processes.lines("notes")) == Counter(map(str, there))
    runs = Run.objects.filter(task_id__in=[*here, *there])
    assert Counter(runs.values_list("kind", "runner_name")) == {
        ("here", "this process"): 5,
        ("note", "the other"): 5,
    }
