"""Waves go out at their time, obey the freeze, and stop when too many failed."""

from datetime import timedelta

import pytest

from fleet.flow.dispatch import dispatch
from fleet.flow.plans import DispatchPlan
from fleet.flow.sweep import sweep
from fleet.flow.tick import tick
from fleet.flow.waves import release_wave
from fleet.models import Command, Execution, Freeze, Origin, Wave, WaveState
from fleet.rules.command_states import CommandState
from fleet.rules.targets import FailureLimit, Rollout, Target
from fleet.rules.targets import Wave as PlannedWave
from tests.fleet.make import MINUTE, NOW, make_agent, make_group, make_job

pytestmark = pytest.mark.django_db
LATER = NOW + 10 * MINUTE
DELAYS = (timedelta(0), 10 * MINUTE, 20 * MINUTE)


def rollout(
    *, limit: FailureLimit | None = None, override_freeze: bool = False, size: int = 1
) -> Execution:
    """Three waves, ten minutes apart, of `size` PCs each."""
    for number in range(3):
        make_group(f"wave{number}", *[make_agent() for _ in range(size)])
    job = make_job()
    assert job.current is not None
    plan = DispatchPlan(
        job.current,
        Origin.MANUAL,
        "alice",
        Target(),
        rollout=Rollout(
            tuple(PlannedWave(f"wave{n}", delay) for n, delay in enumerate(DELAYS)), limit
        ),
        override_freeze=override_freeze,
        reason="r",
    )
    return dispatch(plan, now=NOW)


def states(execution: Execution) -> list[str]:
    rows = Wave.objects.filter(execution=execution).order_by("number")
    return list(rows.values_list("state", flat=True))


def commands(number: int) -> set[str]:
    return set(Command.objects.filter(wave=number).values_list("state", flat=True))


def test_a_wave_becomes_visible_at_its_time_and_once() -> None:
    execution = rollout()
    assert release_wave(execution.pk, 1, now=LATER - timedelta(seconds=1)) is False
    assert release_wave(execution.pk, 1, now=LATER) is True
    assert release_wave(execution.pk, 1, now=LATER) is False
    assert states(execution) == [WaveState.RELEASED, WaveState.RELEASED, WaveState.WAITING]
    assert (commands(1), commands(2)) == ({CommandState.QUEUED}, {CommandState.STAGED})
    assert Wave.objects.get(execution=execution, number=1).released_at == LATER


def test_a_wave_whose_task_was_lost_goes_out_with_the_next_sweep() -> None:
    execution = rollout()
    assert sweep(now=LATER + MINUTE)["waves"] == 1
    assert states(execution)[1] == WaveState.RELEASED


def test_f17_a_wave_waits_while_the_fleet_is_frozen() -> None:
    execution = rollout()
    Freeze.objects.update(is_set=True)
    assert release_wave(execution.pk, 1, now=LATER) is False
    assert tick(now=LATER).waves == 0
    assert (states(execution)[1], commands(1)) == (WaveState.WAITING, {CommandState.STAGED})
    Freeze.objects.update(is_set=False)
    assert tick(now=LATER + MINUTE).waves == 1


def test_an_execution_that_may_pass_the_freeze_goes_on() -> None:
    execution = rollout(override_freeze=True)
    Freeze.objects.update(is_set=True)
    assert release_wave(execution.pk, 1, now=LATER) is True


@pytest.mark.parametrize(
    ("limit", "failed", "goes_on"),
    [
        (None, 4, True),
        (FailureLimit(1), 1, True),
        (FailureLimit(1), 2, False),
        (FailureLimit(50, percent=True), 2, True),
        (FailureLimit(50, percent=True), 3, False),
        (FailureLimit(0), 1, False),
    ],
)
def test_later_waves_stay_away_when_too_many_failed(
    limit: FailureLimit | None, failed: int, goes_on: bool
) -> None:
    execution = rollout(limit=limit, size=4)
    keys = list(Command.objects.filter(wave=0).values_list("pk", flat=True)[:failed])
    Command.objects.filter(pk__in=keys).update(state=CommandState.FAILED)
    assert release_wave(execution.pk, 1, now=LATER) is goes_on
    if goes_on:
        assert states(execution)[1:] == [WaveState.RELEASED, WaveState.WAITING]
        return
    assert states(execution) == [WaveState.RELEASED, WaveState.STOPPED, WaveState.STOPPED]
    assert commands(1) == commands(2) == {CommandState.CANCELLED}
    reasons = set(Wave.objects.exclude(reason="").values_list("reason", flat=True))
    assert reasons == {"too many PCs of the earlier waves failed"}


def test_a_wave_of_a_killed_execution_stays_away() -> None:
    execution = rollout()
    Execution.objects.update(state="cancelled")
    assert release_wave(execution.pk, 1, now=LATER) is False
    assert commands(1) == {CommandState.STAGED}
