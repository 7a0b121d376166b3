"""The kinds that the scheduler calls: keys are read, work is done, idle passes leave no run."""

from datetime import datetime
from unittest.mock import patch

import pytest

from fleet.flow import filling
from fleet.flow.dispatch import dispatch
from fleet.flow.plans import DispatchPlan
from fleet.models import Command, Execution, Freeze, Origin, Schedule, ScheduleAgent
from fleet.rules.command_states import CommandState
from fleet.rules.targets import Rollout, Target, Wave
from scheduler.public import NOTHING, Fire
from scheduler.registry import REGISTRY
from tests.fleet.make import (
    MINUTE,
    NOW,
    make_agent,
    make_group,
    make_job,
    make_schedule,
    make_schedule_agent,
)

pytestmark = pytest.mark.django_db


def fire(kind: str, key: str | None = None, *, now: datetime = NOW) -> object:
    """Call the body of a kind as a runner would."""
    call = Fire(
        task_id=1,
        kind=kind,
        key=key,
        input=None,
        attempt=1,
        due_at=now,
        occurrence_at=None,
        now=now,
    )
    return REGISTRY.get(kind).handler(call)


def large_execution() -> Execution:
    for _ in range(25):
        make_agent()
    job = make_job()
    assert job.current is not None
    with patch.object(filling, "CHUNK", 10):
        return dispatch(
            DispatchPlan(job.current, Origin.MANUAL, "alice", Target(all=True)), now=NOW
        )


def test_every_kind_of_the_fleet_is_known() -> None:
    assert {name for name in REGISTRY.kinds if name.startswith("fleet.")} >= {
        "fleet.tick",
        "fleet.evaluate",
        "fleet.fanout",
        "fleet.wave",
        "fleet.targets",
        "fleet.cleanup",
        "fleet.audit",
    }


def test_a_tick_tells_what_it_did() -> None:
    make_schedule_agent(make_schedule(), make_agent())
    assert fire("fleet.tick") == {"looked_at": 1, "fired": 1, "held": 0, "waves": 0}


@pytest.mark.parametrize("kind", ["fleet.tick", "fleet.cleanup", "fleet.audit"])
def test_an_idle_pass_leaves_no_run(kind: str) -> None:
    assert fire(kind) is NOTHING


def test_a_schedule_is_looked_at_without_waiting_for_the_minute() -> None:
    schedule = make_schedule()
    make_schedule_agent(schedule, make_agent())
    assert fire("fleet.evaluate", str(schedule.pk)) == {"fired": 1}


def test_a_schedule_that_is_gone_is_nothing() -> None:
    assert fire("fleet.evaluate", "4711") == {"fired": 0}


def test_a_large_execution_is_filled_to_its_end() -> None:
    execution = large_execution()
    with patch.object(filling, "CHUNK", 10):
        assert fire("fleet.fanout", str(execution.pk)) == {"chunks": 3}
        assert fire("fleet.fanout", str(execution.pk)) == {"chunks": 1}
    assert Command.objects.filter(state=CommandState.QUEUED).count() == 25


def test_targets_are_computed_and_the_schedule_fires_at_once() -> None:
    schedule = make_schedule()
    Schedule.objects.update(targets_dirty_at=NOW)
    with patch("fleet.handlers.timezone.now", return_value=NOW):
        make_agent()
        assert fire("fleet.targets", str(schedule.pk)) == {"changed": 1, "fired": 1}
    assert ScheduleAgent.objects.get().due_at is None


def test_a_wave_is_released_by_execution_and_number() -> None:
    make_group("first", make_agent())
    make_group("second", make_agent())
    job = make_job()
    assert job.current is not None
    waves = (Wave("first", 0 * MINUTE), Wave("second", 10 * MINUTE))
    plan = DispatchPlan(job.current, Origin.MANUAL, "alice", Target(), rollout=Rollout(waves))
    execution = dispatch(plan, now=NOW)
    key = f"{execution.pk}:1"
    assert fire("fleet.wave", key) == {"released": False}
    assert fire("fleet.wave", key, now=NOW + 10 * MINUTE) == {"released": True}


def test_a_frozen_fleet_is_told_once() -> None:
    make_schedule()
    Freeze.objects.update(is_set=True)
    assert fire("fleet.tick") == {"looked_at": 0, "fired": 0, "held": 1, "waves": 0}
    assert fire("fleet.tick", now=NOW + MINUTE) is NOTHING
