"""A PC that was set up anew takes its old record over."""

from datetime import timedelta

import pytest

from fleet.models import Agent, AgentState, Command, JobAgent, Result, ScheduleAgent
from fleet.operations.replacing import SET_UP_ANEW, likely_predecessors, take_over_record
from fleet.rules.command_states import CommandState
from fleet.rules.refusals import Conflict
from scheduler.models import AuditEntry
from scheduler.public import Actor
from tests.fleet.agent_api.asking import Pc
from tests.fleet.make import (
    NOW,
    make_agent,
    make_command,
    make_group,
    make_schedule,
    make_schedule_agent,
)

pytestmark = pytest.mark.django_db
ALICE = Actor("user", "alice", user_id=None)
LATER = NOW + timedelta(minutes=1)
S = CommandState


def replace(new: Agent, old: Agent) -> Agent:
    return take_over_record(new, old, actor=ALICE, now=LATER)


def test_the_machine_goes_on_with_its_credential_under_the_old_name_and_groups() -> None:
    old, new = make_agent("till-1"), make_agent("till-1-2")
    make_group("tills", old)
    pc = Pc(new)

    record = replace(new, old)
    told = pc.exchanges()

    old.refresh_from_db()
    new.refresh_from_db()
    assert record.pk == old.pk
    assert (old.name, old.uuid_text) == ("till-1", pc.credential.split("_")[1])
    assert [group.slug for group in old.groups.all()] == ["tills"]
    assert (new.state, new.state_reason) == (AgentState.REVOKED, "it is till-1 again")
    assert new.uuid != old.uuid
    assert told["verdicts"] == {}


def test_the_old_systems_credential_opens_nothing_any_more() -> None:
    old, new = make_agent("till-1"), make_agent("till-1-2")
    before = Pc(old)

    replace(new, old)

    assert before.sends().status_code == 401


def test_history_stays_and_what_the_jobs_had_done_is_due_again() -> None:
    old, new = make_agent("till-1"), make_agent("till-1-2")
    schedule = make_schedule()
    make_schedule_agent(schedule, old, due_at=None)
    done = make_command(old, state=S.SUCCEEDED)
    JobAgent.objects.create(job=schedule.job, agent=old, last_success_at=NOW)

    replace(new, old)

    assert list(old.commands.values_list("pk", flat=True)) == [done.pk]
    assert not JobAgent.objects.exists()
    row = ScheduleAgent.objects.get()
    assert (row.agent_id, row.due_at) == (old.pk, LATER)


def test_what_waits_goes_to_the_machine_and_what_the_old_system_held_is_unknown() -> None:
    old, new = make_agent("till-1"), make_agent("till-1-2")
    waiting = make_command(old, state=S.QUEUED)
    held = make_command(old, state=S.STARTED)
    never = make_command(new, state=S.QUEUED)

    replace(new, old)

    states = dict(Command.objects.values_list("pk", "state"))
    assert states == {
        waiting.pk: S.QUEUED.value,
        held.pk: S.OUTCOME_UNKNOWN.value,
        never.pk: S.CANCELLED.value,
    }
    assert Result.objects.get().reason == SET_UP_ANEW


def test_no_number_goes_out_twice() -> None:
    old, new = make_agent("till-1"), make_agent("till-1-2")
    old.presence.handouts = 9
    old.presence.save()

    record = replace(new, old)

    assert record.presence.handouts == 9


@pytest.mark.parametrize("which", ["new", "old"])
def test_a_revoked_record_is_neither_taken_over_nor_takes_over(which: str) -> None:
    agents = {"new": make_agent("till-1-2"), "old": make_agent("till-1")}
    Agent.objects.filter(pk=agents[which].pk).update(state=AgentState.REVOKED)

    with pytest.raises(Conflict):
        replace(agents["new"], agents["old"])

    assert Agent.objects.filter(uuid=agents["old"].uuid, name="till-1").exists()
    assert not AuditEntry.objects.exists()


def test_a_pc_is_not_its_own_predecessor() -> None:
    agent = make_agent("till-1")

    with pytest.raises(Conflict):
        replace(agent, agent)


def test_it_is_audited_with_both_names() -> None:
    old, new = make_agent("till-1"), make_agent("till-1-2")

    replace(new, old)

    entry = AuditEntry.objects.get()
    assert (entry.action, entry.object_id) == ("take over record", new.uuid_text)
    assert entry.before == {"name": "till-1-2", "identity_of_the_record": old.uuid_text}
    assert entry.after == {"name": "till-1"}


def test_offered_are_records_of_the_same_machine_or_name_that_stand() -> None:
    new = make_agent("till-1-2", reported_name="till-1", fingerprint="a" * 64)
    same_name = make_agent("till-1", reported_name="till-1", fingerprint="b" * 64)
    same_machine = make_agent("kiosk", fingerprint="a" * 64)
    make_agent("other", fingerprint="c" * 64)
    make_agent("gone", fingerprint="a" * 64, state=AgentState.REVOKED)

    assert set(likely_predecessors(new)) == {same_name, same_machine}
