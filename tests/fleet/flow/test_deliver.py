"""The hand-out of commands, gate by gate."""

import json
from base64 import b64decode
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.agent.checks import Accept, Pinned, examine
from fleet.flow import deliver as module
from fleet.flow.deliver import Delivery, HandOutLostError, deliver
from fleet.flow.signing import server_signer
from fleet.models import (
    Agent,
    AgentPresence,
    AgentState,
    Command,
    Freeze,
    Job,
    JobRevision,
)
from fleet.rules.command_states import CommandState
from fleet.rules.execution_states import ExecutionState
from tests.fleet.make import (
    NOW,
    make_agent,
    make_command,
    make_execution,
    make_job,
    revise,
)

pytestmark = pytest.mark.django_db
S = CommandState
LATER = NOW + timedelta(seconds=10)
PLENTY = 3_000_000


def give(
    agent: Agent,
    *,
    in_hand: frozenset[UUID] = frozenset(),
    most_bytes: int = PLENTY,
    now: datetime = LATER,
) -> Delivery:
    return deliver(agent.pk, in_hand=in_hand, most_bytes=most_bytes, now=now)


def payloads(delivery: Delivery) -> list[dict[str, Any]]:
    return [json.loads(b64decode(str(one["payload"]))) for one in delivery.envelopes]


def ids(delivery: Delivery) -> list[str]:
    return [payload["cmd_id"] for payload in payloads(delivery)]


def freeze(**fields: object) -> None:
    Freeze.objects.update(**({"is_set": True, "reason": "quarter end"} | fields))


def state_of(command: Command) -> tuple[str, str]:
    command.refresh_from_db()
    return command.state, command.reason


def test_a_queued_command_goes_out_once_numbered_and_timed() -> None:
    command = make_command()

    delivery = give(command.agent)

    command.refresh_from_db()
    assert ids(delivery) == [str(command.pk)]
    assert (command.state, command.seq, command.handed_out_at) == ("handed_out", 1, LATER)
    assert command.handed_out_epoch == 1
    # Its deadline, its 30 s and the two minutes of grace after that.
    assert command.reap_at == command.deadline_at + timedelta(seconds=150)
    assert AgentPresence.objects.get().handouts == 1


def test_the_agent_accepts_what_the_server_signed() -> None:
    job = make_job(
        "cleanup",
        version="1.2",
        execute={"script": "echo é\n", "params": {"DAYS": "7", "MODE": {"default": "soft"}}},
    )
    plan = {"retry": {"max": 2, "backoff_s": 60}, "params": {"DAYS": "30"}}
    execution = make_execution(job, plan=plan, override_freeze=True, reason="urgent")
    command = make_command(execution=execution, start_after=NOW + timedelta(minutes=5))
    signer = server_signer()

    delivery = give(command.agent)

    pinned = Pinned(command.agent.uuid_text, str(signer.server_id), 1, signer.public_key)
    verdict = examine(delivery.envelopes[0], pinned=pinned, memory=Forgetful(), now=LATER)
    assert isinstance(verdict, Accept)
    told = verdict.command
    assert (told.id, told.job, told.version, told.seq) == (str(command.pk), "cleanup", "1.2", 1)
    assert told.script.text == "echo é\n"
    assert told.script.params == {"DAYS": "30", "MODE": "soft"}
    assert (told.retry.times, told.retry.backoff_s) == (2, 60)
    assert (told.start_after, told.override_freeze) == (NOW + timedelta(minutes=5), True)
    assert (told.issued_at, told.deadline_at) == (LATER, command.deadline_at)


class Forgetful:
    """A journal without entries."""

    def entry(self, _command: str, /) -> None:
        return None

    def may_have_forgotten(self, _command: object, /) -> bool:
        return False


def test_what_went_out_and_did_not_arrive_goes_out_again_with_the_same_words() -> None:
    command = make_command()
    first = payloads(give(command.agent))

    again = payloads(give(command.agent, now=LATER + timedelta(minutes=1)))

    command.refresh_from_db()
    assert again == first
    assert (command.handed_out_at, AgentPresence.objects.get().handouts) == (LATER, 1)


def test_what_the_agent_has_in_hand_does_not_go_out_again() -> None:
    command = make_command()
    give(command.agent)

    assert give(command.agent, in_hand=frozenset({command.pk})).envelopes == []


@pytest.mark.parametrize("state", [S.STAGED, S.STARTED, S.SUCCEEDED, S.CANCELLED, S.EXPIRED])
def test_a_command_in_another_state_stays_where_it_is(state: CommandState) -> None:
    command = make_command(state=state)

    assert give(command.agent).envelopes == []
    assert state_of(command) == (state.value, "")


def test_only_the_agents_own_commands_go_out() -> None:
    mine, other = make_command(), make_command()

    assert ids(give(mine.agent)) == [str(mine.pk)]
    assert state_of(other) == ("queued", "")


def test_commands_go_out_in_their_order_those_that_went_before_first() -> None:
    agent = make_agent()
    first = make_command(agent)
    give(agent)
    second, third = make_command(agent), make_command(agent)

    delivery = give(agent)

    assert ids(delivery) == [str(one.pk) for one in (first, second, third)]
    assert [payload["seq"] for payload in payloads(delivery)] == [1, 2, 3]


@pytest.mark.parametrize("state", [AgentState.PENDING, AgentState.REVOKED])
def test_an_agent_that_may_not_take_work_gets_none(state: AgentState) -> None:
    command = make_command(make_agent(state=state))

    assert give(command.agent).envelopes == []
    assert state_of(command) == ("queued", "")


# --- freeze ----------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [S.QUEUED, S.HANDED_OUT])
def test_nothing_goes_out_while_frozen_the_second_time_neither(state: CommandState) -> None:
    command = make_command(state=state)
    freeze()

    delivery = give(command.agent)

    assert delivery.envelopes == []
    assert delivery.freeze.words == "frozen: quarter end"
    assert state_of(command) == (state.value, "")


def test_after_the_thaw_it_goes_out() -> None:
    command = make_command()
    freeze()
    give(command.agent)
    Freeze.objects.update(is_set=False)

    assert ids(give(command.agent)) == [str(command.pk)]


def test_a_command_that_overrides_the_freeze_goes_out() -> None:
    agent = make_agent()
    held = make_command(agent)
    execution = make_execution(override_freeze=True, reason="urgent")
    urgent = make_command(agent, execution=execution)
    freeze()

    assert ids(give(agent)) == [str(urgent.pk)]
    assert state_of(held) == ("queued", "")


@pytest.mark.parametrize(
    "broken",
    [{"starts": "soon"}, {"tz": "Mars/Olympus"}, {"starts": "2027-01-01", "ends": "2026-01-01"}],
)
def test_a_freeze_that_cannot_be_read_holds_everything(broken: dict[str, str]) -> None:
    command = make_command()
    freeze(**broken)

    assert give(command.agent).envelopes == []
    assert state_of(command) == ("queued", "")


def test_a_missing_freeze_row_holds_everything() -> None:
    command = make_command()
    Freeze.objects.all().delete()

    delivery = give(command.agent)

    assert delivery.envelopes == []
    assert delivery.freeze.unreadable is not None


# --- what has changed since ----------------------------------------------------------------


@pytest.mark.parametrize("state", [S.QUEUED, S.HANDED_OUT])
def test_a_revoked_job_does_not_go_out(state: CommandState) -> None:
    command = make_command(state=state)
    Job.objects.update(revoked_at=NOW)

    assert give(command.agent).envelopes == []
    assert state_of(command) == ("skipped", "job revoked")


def test_a_deleted_job_does_not_go_out() -> None:
    command = make_command()
    Job.objects.update(revoked_at=NOW, deleted_at=NOW)

    assert give(command.agent).envelopes == []
    assert state_of(command) == ("skipped", "job revoked")


@pytest.mark.parametrize("state", [S.QUEUED, S.HANDED_OUT])
def test_a_command_whose_script_is_not_the_current_one_is_skipped(state: CommandState) -> None:
    job = make_job()
    command = make_command(job=job, state=state)
    revise(job, version="2", execute={"script": "echo other"})

    assert give(command.agent).envelopes == []
    assert state_of(command) == ("skipped", "another version of the job is current")


def test_a_changed_description_kills_nothing() -> None:
    job = make_job()
    command = make_command(job=job)
    revise(job, version="2")

    assert ids(give(command.agent)) == [str(command.pk)]


def test_a_newer_revision_that_waits_for_approval_kills_nothing() -> None:
    job = make_job()
    command = make_command(job=job)
    revise(job, version="2", execute={"script": "echo other"}, current=False, require_approval=True)

    assert ids(give(command.agent)) == [str(command.pk)]


def test_a_revision_without_its_approval_is_held() -> None:
    job = make_job()
    command = make_command(job=job)
    JobRevision.objects.update(requires_approval=True, approved_at=None)

    assert give(command.agent).envelopes == []
    assert state_of(command) == ("queued", "")


@pytest.mark.parametrize(
    "state",
    [ExecutionState.AWAITING_APPROVAL, ExecutionState.PLANNING, ExecutionState.CANCELLED],
)
def test_a_command_of_an_execution_that_is_not_live_is_held(state: ExecutionState) -> None:
    command = make_command(execution=make_execution(state=state.value))

    assert give(command.agent).envelopes == []
    assert state_of(command) == ("queued", "")


def test_the_deadline_is_the_last_instant() -> None:
    command = make_command(deadline_at=LATER)

    assert ids(give(command.agent)) == [str(command.pk)]


@pytest.mark.parametrize("state", [S.QUEUED, S.HANDED_OUT])
def test_past_its_deadline_a_command_expires(state: CommandState) -> None:
    command = make_command(state=state, deadline_at=LATER - timedelta(microseconds=1))

    assert give(command.agent).envelopes == []
    assert state_of(command) == ("expired", "its deadline passed before it was handed out")


def test_a_stopped_command_that_did_not_arrive_is_cancelled() -> None:
    command = make_command(state=S.HANDED_OUT, kill_requested_at=NOW)

    assert give(command.agent).envelopes == []
    assert state_of(command) == ("cancelled", "stopped before it started")


def test_a_stored_job_that_cannot_be_read_is_skipped_and_stops_no_other() -> None:
    agent = make_agent()
    broken, good = make_command(agent), make_command(agent)
    JobRevision.objects.filter(pk=broken.revision_id).update(manifest={"id": 3}, sha256="b" * 64)

    assert ids(give(agent)) == [str(good.pk)]
    assert state_of(broken) == ("skipped", "the stored job cannot be read")


# --- max_concurrent ------------------------------------------------------------------------


def test_no_more_slots_are_taken_than_there_are() -> None:
    job = make_job()
    commands = [make_command(job=job, max_concurrent=2) for _ in range(3)]

    given = [len(give(command.agent).envelopes) for command in commands]

    job.refresh_from_db()
    assert given == [1, 1, 0]
    assert job.slots_taken == 2
    assert [Command.objects.get(pk=one.pk).holds_slot for one in commands] == [True, True, False]


def test_a_command_that_goes_out_again_keeps_its_slot_and_takes_no_other() -> None:
    job = make_job()
    command = make_command(job=job, max_concurrent=1)
    give(command.agent)

    assert ids(give(command.agent)) == [str(command.pk)]
    job.refresh_from_db()
    assert job.slots_taken == 1


def test_a_held_command_takes_no_slot() -> None:
    job = make_job()
    command = make_command(job=job, max_concurrent=1)
    freeze()

    give(command.agent)

    job.refresh_from_db()
    assert job.slots_taken == 0


def test_a_slot_is_free_again_when_its_command_expires_at_a_second_hand_out() -> None:
    job = make_job()
    command = make_command(job=job, max_concurrent=1, deadline_at=LATER)
    give(command.agent)

    give(command.agent, now=LATER + timedelta(minutes=1))

    job.refresh_from_db()
    assert job.slots_taken == 0


def test_a_command_without_a_cap_counts_against_none() -> None:
    job = make_job()
    Job.objects.update(slots_taken=5)
    command = make_command(job=job)

    assert ids(give(command.agent)) == [str(command.pk)]
    job.refresh_from_db()
    assert job.slots_taken == 5


# --- size ----------------------------------------------------------------------------------


def test_what_does_not_fit_into_the_reply_comes_the_next_time() -> None:
    agent = make_agent()
    job = make_job(execute={"script": "#" * 100_000})
    commands = [make_command(agent, job=job) for _ in range(3)]

    first = give(agent, most_bytes=300_000)
    rest = give(agent, most_bytes=300_000, in_hand=frozenset({commands[0].pk, commands[1].pk}))

    assert ids(first) == [str(commands[0].pk), str(commands[1].pk)]
    assert (first.more, rest.more) == (True, False)
    assert ids(rest) == [str(commands[2].pk)]


def test_one_command_always_fits() -> None:
    command = make_command(job=make_job(execute={"script": "é" * 60_000}))

    assert ids(give(command.agent, most_bytes=10)) == [str(command.pk)]


def test_at_most_fifty_go_out_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_COMMANDS", 2)
    agent, job = make_agent(), make_job()
    for _ in range(3):
        make_command(agent, job=job)

    delivery = give(agent)

    assert (len(delivery.envelopes), delivery.more) == (2, True)


# --- one winner ----------------------------------------------------------------------------


def test_a_command_that_somebody_else_moved_takes_the_whole_hand_out_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = make_job()
    command = make_command(job=job, max_concurrent=1)
    stale = list(Command.objects.filter(pk=command.pk))
    Command.objects.update(state=S.CANCELLED.value)
    monkeypatch.setattr(module, "_asked_for", lambda *_: stale)

    with pytest.raises(HandOutLostError):
        give(command.agent)

    job.refresh_from_db()
    assert job.slots_taken == 0
    assert state_of(command) == ("cancelled", "")
    assert AgentPresence.objects.get().handouts == 0


def test_the_hand_out_costs_the_same_for_one_and_for_many() -> None:
    job = make_job()
    server_signer()

    def queries(count: int) -> int:
        agent = make_agent()
        for _ in range(count):
            make_command(agent, execution=make_execution(job))
        with CaptureQueriesContext(connection) as captured:
            assert len(give(agent).envelopes) == count
        return len(captured)

    assert queries(1) == queries(20)
