"""History goes when it is old enough, strictly; facts stay."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from unittest.mock import patch

import pytest
from pytest_django import Settings

from fleet.flow import retention
from fleet.flow.dispatch import dispatch
from fleet.flow.plans import DispatchPlan
from fleet.models import (
    Command,
    Evaluation,
    Execution,
    JobAgent,
    Occurrence,
    Origin,
    Output,
    OutputChunk,
    Result,
    Wave,
    new_id,
)
from fleet.rules.targets import Rollout, Target
from fleet.rules.targets import Wave as PlannedWave
from tests.fleet.make import NOW, make_agent, make_group, make_job, make_schedule

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)


@pytest.fixture(autouse=True)
def small_batches() -> Iterator[None]:
    """Two rows at a time, so that few rows make several batches."""
    with patch.object(retention, "BATCH", 2):
        yield


def result(received_at: datetime) -> Result:
    return Result.objects.create(
        command_id=new_id(),
        agent_id=1,
        job_id=1,
        job_version="1",
        revision_id=1,
        outcome="succeeded",
        received_at=received_at,
    )


@pytest.mark.parametrize(
    ("age", "gone"),
    [
        pytest.param(120 * DAY, True, id="21#15 120 d"),
        pytest.param(30 * DAY, False, id="21#15 30 d"),
        pytest.param(90 * DAY, False, id="21#18 a result"),
        pytest.param(90 * DAY + SECOND, True, id="21 a second older"),
    ],
)
def test_results_go_after_ninety_days(age: timedelta, gone: bool) -> None:
    for _ in range(5):
        result(NOW - age)
    kept = result(NOW)
    assert retention.prune_results(NOW) == (5 if gone else 0)
    assert Result.objects.filter(pk=kept.pk).exists()


def test_the_last_success_outlives_its_result() -> None:
    """`once` never re-arms because history was pruned."""
    result(NOW - 120 * DAY)
    agent, job = make_agent(), make_job()
    JobAgent.objects.create(
        job=job, agent=agent, last_success_at=NOW - 120 * DAY, last_success_version="1"
    )
    retention.prune_results(NOW)
    assert JobAgent.objects.count() == 1


@pytest.mark.parametrize(("age", "left"), [(31 * DAY, 0), (30 * DAY, 3), (DAY, 3)])
def test_output_goes_after_thirty_days(age: timedelta, left: int) -> None:
    for number in range(3):
        shared = {"command_id": new_id(), "stream": "stdout", "received_at": NOW - age}
        Output.objects.create(head=b"x", tail=b"", total=1, **shared)
        OutputChunk.objects.create(offset=number, data=b"x", **shared)
    retention.prune_output(NOW)
    assert (Output.objects.count(), OutputChunk.objects.count()) == (left, left)


def execution_of_age(age: timedelta, state: str = "ended", command: str = "succeeded") -> Execution:
    """An execution of two waves and four commands that began that long ago."""
    first = retention.first_id_at(NOW - age)
    for number in range(2):
        make_group(f"g{number}-{age.days}", make_agent(), make_agent())
    job = make_job()
    assert job.current is not None
    waves = tuple(PlannedWave(f"g{number}-{age.days}", timedelta(0)) for number in range(2))
    plan = DispatchPlan(job.current, Origin.MANUAL, "alice", Target(), rollout=Rollout(waves))
    with patch.object(Execution._meta.get_field("id"), "_get_default", lambda: first):
        execution = dispatch(plan, now=NOW - age)
    Command.objects.filter(execution=execution).update(state=command)
    Execution.objects.filter(pk=execution.pk).update(state=state)
    return execution


@pytest.mark.parametrize(
    ("state", "command"),
    [
        pytest.param("ended", "succeeded", id="21#16 completed"),
        pytest.param("ended", "expired", id="21#16 expired"),
        pytest.param("cancelled", "cancelled", id="21#16 cancelled"),
    ],
)
def test_executions_go_with_their_commands_and_waves(state: str, command: str) -> None:
    execution_of_age(120 * DAY, state, command)
    young = execution_of_age(DAY)
    assert retention.prune_executions(NOW) == 4 + 1
    assert list(Execution.objects.values_list("pk", flat=True)) == [young.pk]
    assert (Command.objects.count(), Wave.objects.count()) == (4, 2)


@pytest.mark.parametrize("days", [pytest.param(90, id="21#18 an execution")])
def test_an_execution_exactly_at_its_cutoff_stays(days: int) -> None:
    execution_of_age(days * DAY)
    assert retention.prune_executions(NOW) == 0


@pytest.mark.parametrize(
    ("state", "command"),
    [
        pytest.param("live", "queued", id="21#16 ours: pending"),
        pytest.param("live", "started", id="21#16 ours: running"),
        pytest.param("live", "succeeded", id="21#16 ours: not ended yet"),
    ],
)
def test_what_is_not_over_is_never_deleted(state: str, command: str) -> None:
    """The original deleted it whatever its state; here the sweep ends it first."""
    execution_of_age(120 * DAY, state, command)
    retention.prune_executions(NOW)
    assert Execution.objects.count() == 1


def test_old_reasons_go_and_the_one_in_force_stays() -> None:
    schedule = make_schedule()
    for age in (200, 150, 100, 50):
        Evaluation.objects.create(
            schedule=schedule,
            since=NOW - age * DAY,
            until=NOW - (age - 5) * DAY,
            reason="all done",
        )
    still = Evaluation.objects.create(
        schedule=make_schedule(), since=NOW - 300 * DAY, reason="disabled"
    )
    assert retention.prune_evaluations(NOW) == 3
    assert Evaluation.objects.filter(pk=still.pk).exists()
    assert Evaluation.objects.count() == 2


def test_reasons_in_force_do_not_hide_old_ones_behind_them() -> None:
    for _ in range(5):
        Evaluation.objects.create(
            schedule=make_schedule(), since=NOW - 300 * DAY, reason="disabled"
        )
    Evaluation.objects.create(
        schedule=make_schedule(),
        since=NOW - 299 * DAY,
        until=NOW - 298 * DAY,
        reason="all done",
    )
    assert retention.prune_evaluations(NOW) == 1


@pytest.mark.parametrize(("age", "gone"), [(401 * DAY, 3), (400 * DAY, 0)])
def test_nominal_times_go_after_four_hundred_days(age: timedelta, gone: int) -> None:
    schedule = make_schedule(when={"calendar": {"at": "12:00"}})
    for number in range(3):
        Occurrence.objects.create(
            schedule=schedule,
            nominal_at=NOW - age - number * DAY,
            state="fired",
            settled_at=NOW - age,
        )
    assert retention.prune_occurrences(NOW) == gone


def test_retention_is_a_setting(settings: Settings) -> None:
    settings.KANADE_RESULT_RETENTION_DAYS = 7
    result(NOW - 8 * DAY)
    assert retention.prune_results(NOW) == 1
