"""What people do to enrolled PCs: accept, revoke, settle who is who, ask for a new credential."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import F

from fleet.flow.closing import close_all, give_up
from fleet.flow.targets import count_in, count_out
from fleet.flow.wakes import wake
from fleet.models import Agent, AgentState, Command
from fleet.operations.credentials import LONG_AGO
from fleet.rules.command_states import HELD, WAITING, CommandState
from fleet.rules.refusals import Conflict
from scheduler.public import Actor, record_act

AGENT_REVOKED = "agent revoked"


def accept_agent(agent: Agent, *, actor: Actor, now: datetime, reason: str = "") -> None:
    """Let a PC that waits for it take work; Conflict when it does not wait."""
    with transaction.atomic():
        waiting = Agent.objects.filter(pk=agent.pk, state=AgentState.PENDING)
        if not waiting.update(state=AgentState.ACTIVE, state_reason=""):
            raise Conflict(f"{agent.name} does not wait to be accepted")
        count_in(Agent.objects.get(pk=agent.pk), now=now)
        wake([agent.pk])
        after = {"state": AgentState.ACTIVE.value}
        _note(actor, "accept", agent, reason=reason, now=now, after=after)


@dataclass(frozen=True, slots=True)
class Accepted:
    """What became of several PCs: the names of the accepted, and why each other was left."""

    accepted: list[str]
    left: dict[str, str]


def accept_agents(
    names: Sequence[str], *, actor: Actor, now: datetime, reason: str = ""
) -> Accepted:
    """Accept PCs by name or uuid, each by itself: one that does not wait stops no other."""
    accepted: list[str] = []
    left: dict[str, str] = {}
    for name in dict.fromkeys(names):
        agent = Agent.objects.named(name).first()
        if agent is None:
            left[name] = "there is no such PC"
            continue
        try:
            accept_agent(agent, actor=actor, now=now, reason=reason)
        except Conflict as refusal:
            left[name] = refusal.message
        else:
            accepted.append(agent.name)
    return Accepted(accepted, left)


def revoke_agent(agent: Agent, *, actor: Actor, now: datetime, reason: str = "") -> None:
    """Shut a PC out from its next request on. Twice is once.

    What it was not given yet is cancelled; what it holds ends as outcome unknown, for nobody will
    ever say how that ended. To come back it enrols anew, as another agent.
    """
    with transaction.atomic():
        standing = Agent.objects.filter(pk=agent.pk).exclude(state=AgentState.REVOKED)
        if not standing.update(
            state=AgentState.REVOKED,
            state_reason=reason[:500],
            revoked_at=now,
            next_credential_hash="",
        ):
            return
        commands = Command.objects.filter(agent=agent)
        waiting, held = commands.filter(state__in=WAITING), commands.filter(state__in=HELD)
        close_all(waiting, CommandState.CANCELLED, reason=AGENT_REVOKED, now=now)
        give_up(held, reason=AGENT_REVOKED, now=now)
        count_out(agent)
        wake([agent.pk])
        after = {"state": AgentState.REVOKED.value}
        _note(actor, "revoke", agent, reason=reason, now=now, after=after)


def accept_rival(agent: Agent, *, actor: Actor, now: datetime, reason: str = "") -> None:
    """Let the machine that last presented this identity take it over; Conflict without one.

    The machine that had it is the stranger from then on.
    """
    with transaction.atomic():
        found = Agent.objects.select_for_update().get(pk=agent.pk)
        if not found.rival_fingerprint:
            raise Conflict(f"no other machine has presented itself as {found.name}")
        Agent.objects.filter(pk=agent.pk).update(
            fingerprint=found.rival_fingerprint,
            rival_fingerprint="",
            rival_seen_at=None,
            # Whoever still speaks in the old epoch is out of date.
            epoch=F("epoch") + 1,
        )
        before = {"fingerprint": found.fingerprint}
        after = {"fingerprint": found.rival_fingerprint}
        _note(actor, "take over", agent, reason=reason, now=now, before=before, after=after)


def dismiss_rival(agent: Agent, *, actor: Actor, now: datetime, reason: str = "") -> None:
    """Keep the identity with the machine that has it. Shown again if the other one comes back."""
    with transaction.atomic():
        standing = Agent.objects.filter(pk=agent.pk).exclude(rival_fingerprint="")
        if standing.update(rival_fingerprint="", rival_seen_at=None):
            before = {"rival_fingerprint": agent.rival_fingerprint}
            _note(actor, "dismiss", agent, reason=reason, now=now, before=before)


def rotate_credential(agent: Agent, *, actor: Actor, now: datetime, reason: str = "") -> None:
    """Have the PC get a new credential with its next exchange; Conflict for a revoked one."""
    with transaction.atomic():
        standing = Agent.objects.filter(pk=agent.pk).exclude(state=AgentState.REVOKED)
        # Whatever was offered and not used is void.
        if not standing.update(credential_at=LONG_AGO, next_credential_hash=""):
            raise Conflict(f"{agent.name} is revoked")
        wake([agent.pk])
        _note(actor, "rotate", agent, reason=reason, now=now)


def _note(
    actor: Actor,
    action: str,
    agent: Agent,
    *,
    reason: str,
    now: datetime,
    after: Mapping[str, object] | None = None,
    before: Mapping[str, object] | None = None,
) -> None:
    record_act(
        actor,
        action,
        object_kind="agent",
        object_id=agent.uuid_text,
        before={"state": agent.state} if before is None else before,
        after=after,
        reason=reason,
        now=now,
    )
