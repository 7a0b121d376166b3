"""What people do to enrolled PCs."""

from datetime import timedelta

import pytest

from fleet.models import Agent, AgentState, Command, Result
from fleet.operations.agents import (
    accept_agent,
    accept_rival,
    dismiss_rival,
    revoke_agent,
    rotate_credential,
)
from fleet.operations.credentials import offer_credential
from fleet.rules.command_states import CommandState
from fleet.rules.refusals import Conflict
from scheduler.models import AuditEntry
from scheduler.public import Actor
from tests.fleet.make import NOW, make_agent, make_command

pytestmark = pytest.mark.django_db
ALICE = Actor("user", "alice", user_id=None)
LATER = NOW + timedelta(minutes=1)
S = CommandState


def audited() -> list[tuple[str, str]]:
    return list(AuditEntry.objects.order_by("pk").values_list("action", "actor_name"))


def test_an_accepted_pc_may_take_work() -> None:
    agent = make_agent(state=AgentState.PENDING)

    accept_agent(agent, actor=ALICE, now=LATER)

    agent.refresh_from_db()
    assert agent.state == AgentState.ACTIVE
    assert audited() == [("accept", "alice")]


@pytest.mark.parametrize("state", [AgentState.ACTIVE, AgentState.REVOKED])
def test_only_a_pc_that_waits_is_accepted(state: AgentState) -> None:
    agent = make_agent(state=state)

    with pytest.raises(Conflict):
        accept_agent(agent, actor=ALICE, now=LATER)

    agent.refresh_from_db()
    assert agent.state == state
    assert audited() == []


def test_a_revoked_pc_loses_what_it_was_not_given_and_what_it_holds_is_unknown() -> None:
    agent = make_agent()
    made = {
        state: make_command(agent, state=state)
        for state in (S.STAGED, S.QUEUED, S.HANDED_OUT, S.STARTED, S.SUCCEEDED)
    }

    revoke_agent(agent, actor=ALICE, now=LATER, reason="stolen")

    states = {state: Command.objects.get(pk=made[state].pk).state for state in made}
    assert states == {
        S.STAGED: "cancelled",
        S.QUEUED: "cancelled",
        S.HANDED_OUT: "outcome_unknown",
        S.STARTED: "outcome_unknown",
        S.SUCCEEDED: "succeeded",
    }
    assert {r.reason for r in Result.objects.all()} == {"agent revoked"}
    assert Result.objects.count() == 2


def test_a_revoked_pc_says_since_when_and_why() -> None:
    agent = make_agent()

    revoke_agent(agent, actor=ALICE, now=LATER, reason="stolen")

    agent.refresh_from_db()
    assert (agent.state, agent.revoked_at, agent.state_reason) == ("revoked", LATER, "stolen")
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.reason, entry.before, entry.after) == (
        "revoke",
        "stolen",
        {"state": "active"},
        {"state": "revoked"},
    )


def test_revoking_twice_is_once() -> None:
    agent = make_agent()
    revoke_agent(agent, actor=ALICE, now=LATER, reason="first")

    revoke_agent(agent, actor=ALICE, now=LATER + timedelta(hours=1), reason="second")

    agent.refresh_from_db()
    assert (agent.revoked_at, agent.state_reason) == (LATER, "first")
    assert audited() == [("revoke", "alice")]


def test_the_other_machine_takes_the_identity_over() -> None:
    agent = make_agent(fingerprint="a" * 64, rival_fingerprint="b" * 64, epoch=4)

    accept_rival(agent, actor=ALICE, now=LATER, reason="new mainboard")

    agent.refresh_from_db()
    assert (agent.fingerprint, agent.rival_fingerprint, agent.epoch) == ("b" * 64, "", 5)
    entry = AuditEntry.objects.get()
    assert (entry.before, entry.after) == (
        {"fingerprint": "a" * 64},
        {"fingerprint": "b" * 64},
    )


def test_nobody_takes_over_where_nobody_came() -> None:
    agent = make_agent(fingerprint="a" * 64)

    with pytest.raises(Conflict):
        accept_rival(agent, actor=ALICE, now=LATER)

    agent.refresh_from_db()
    assert (agent.fingerprint, agent.epoch) == ("a" * 64, 1)
    assert audited() == []


def test_the_other_machine_is_dismissed() -> None:
    agent = make_agent(fingerprint="a" * 64, rival_fingerprint="b" * 64, rival_seen_at=NOW)

    dismiss_rival(agent, actor=ALICE, now=LATER)
    dismiss_rival(agent, actor=ALICE, now=LATER)

    agent.refresh_from_db()
    assert (agent.fingerprint, agent.rival_fingerprint, agent.rival_seen_at) == ("a" * 64, "", None)
    assert audited() == [("dismiss", "alice")]


def test_a_credential_is_renewed_when_somebody_asks_for_it() -> None:
    agent = make_agent(credential_hash="c" * 64)
    assert offer_credential(agent, agent.uuid_text, now=LATER) is None

    rotate_credential(agent, actor=ALICE, now=LATER)

    agent.refresh_from_db()
    assert offer_credential(agent, agent.uuid_text, now=LATER) is not None
    assert audited() == [("rotate", "alice")]


def test_a_revoked_pc_gets_no_new_credential() -> None:
    agent = make_agent(state=AgentState.REVOKED)

    with pytest.raises(Conflict):
        rotate_credential(agent, actor=ALICE, now=LATER)

    assert Agent.objects.get().credential_at == NOW
