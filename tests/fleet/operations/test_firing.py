"""Firing a schedule by hand."""

from datetime import timedelta
from typing import Any

import pytest

from fleet.models import Command, Execution, Job, Origin, Schedule
from fleet.operations.firing import fire_schedule
from fleet.operations.freezing import set_freeze
from fleet.operations.jobs import revoke_job
from fleet.rules.command_states import CommandState
from fleet.rules.refusals import Conflict, Frozen, Invalid, NotFound
from scheduler.models import AuditEntry
from scheduler.public import Actor
from tests.fleet.make import (
    NOW,
    make_agent,
    make_command,
    make_job,
    make_schedule,
    make_schedule_agent,
    revise,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("asked")]
CLOSED: dict[str, Any] = {
    "constraints": {"window": "02:00-03:00", "skip_dates": ["2026-12-01"]},
    "active": {"until": "2026-01-01"},
    "tz": "utc",
    "enabled": False,
}


def targets() -> list[str]:
    return sorted(Command.objects.values_list("agent__name", flat=True))


def test_the_whole_target_is_sent_the_job_although_every_gate_of_time_is_closed(
    alice: Actor,
) -> None:
    make_agent("pc-1")
    make_agent("pc-2", last_seen_at=None)
    schedule = make_schedule("nightly", **CLOSED)
    execution = fire_schedule(schedule, actor=alice, now=NOW, reason="now please")
    assert (execution.origin, execution.actor, execution.reason) == (
        Origin.FIRE,
        "alice",
        "now please",
    )
    assert (execution.schedule, targets()) == (schedule, ["pc-1", "pc-2"])
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.object_kind, entry.object_id) == ("fire", "schedule", "nightly")
    assert (entry.reason, entry.after) == (
        "now please",
        {"execution": str(execution.pk), "override_freeze": False},
    )


def test_a_calendar_is_fired_now(alice: Actor) -> None:
    make_agent("pc-1")
    schedule = make_schedule(when={"calendar": {"at": "09:00"}}, **CLOSED)
    assert fire_schedule(schedule, actor=alice, now=NOW).planned == 1


def test_who_is_muted_or_done_is_sent_the_job_all_the_same(alice: Actor) -> None:
    agent = make_agent("pc-1")
    schedule = make_schedule()
    make_schedule_agent(schedule, agent, due_at=None, last_dispatched_at=NOW)
    fire_schedule(schedule, actor=alice, now=NOW + timedelta(seconds=1))
    assert targets() == ["pc-1"]


def test_whoever_has_the_job_open_is_left_out(alice: Actor) -> None:
    job = make_job()
    busy = make_agent("busy")
    make_agent("free")
    make_command(busy, job=job, state=CommandState.STARTED)
    execution = fire_schedule(make_schedule(job=job), actor=alice, now=NOW)
    assert [command.agent.name for command in execution.commands.all()] == ["free"]


def refused(schedule: Schedule, alice: Actor, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        fire_schedule(schedule, actor=alice, now=NOW)
    assert not Execution.objects.exists()
    assert not AuditEntry.objects.filter(action="fire").exists()


def test_a_freeze_holds(alice: Actor) -> None:
    make_agent()
    set_freeze({"reason": "holidays"}, actor=alice, now=NOW)
    refused(make_schedule(), alice, Frozen, "the fleet is frozen: holidays")


def test_an_override_passes_the_freeze_with_a_reason_alone(alice: Actor) -> None:
    make_agent("pc-1")
    set_freeze({}, actor=alice, now=NOW)
    schedule = make_schedule()
    with pytest.raises(Invalid, match="say why"):
        fire_schedule(schedule, actor=alice, now=NOW, override_freeze=True)
    found = fire_schedule(schedule, actor=alice, now=NOW, reason="outage", override_freeze=True)
    assert (found.override_freeze, targets()) == (True, ["pc-1"])


def test_a_revoked_job_is_not_fired(alice: Actor) -> None:
    make_agent()
    schedule = make_schedule()
    revoke_job(schedule.job, actor=alice, now=NOW)
    refused(schedule, alice, Conflict, "job revoked")


def test_an_unapproved_job_is_not_fired(alice: Actor) -> None:
    make_agent()
    job = Job.objects.create(slug="new", created_at=NOW, updated_at=NOW)
    revise(job, version="1", current=False, require_approval=True)
    refused(make_schedule(job=job), alice, Conflict, "not approved")


def test_a_schedule_without_a_target_is_not_fired(alice: Actor) -> None:
    make_agent()
    refused(make_schedule(target={}), alice, Conflict, "no target")


def test_a_schedule_that_agents_run_is_fired_from_here(alice: Actor) -> None:
    make_agent("pc-1")
    schedule = make_schedule(runs_on="agent")
    fire_schedule(schedule, actor=alice, now=NOW)
    assert targets() == ["pc-1"]


def test_a_schedule_that_cannot_be_read_is_not_fired(alice: Actor) -> None:
    schedule = make_schedule()
    Schedule.objects.update(manifest={"id": "x"}, fingerprint="x")
    refused(schedule, alice, Conflict, "cannot be read")


def test_a_deleted_schedule_is_not_fired(alice: Actor) -> None:
    schedule = make_schedule()
    Schedule.objects.all().delete()
    refused(schedule, alice, NotFound, "there is no schedule")


def test_a_job_that_requires_approval_waits_for_a_second_person(alice: Actor) -> None:
    make_agent()
    job = make_job()
    revise(job, version="1", require_approval=True)
    execution = fire_schedule(make_schedule(job=job), actor=alice, now=NOW)
    assert execution.state == "awaiting_approval"
    assert not Command.objects.exists()
