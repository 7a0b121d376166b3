"""A PC that was set up anew and enrolled once more becomes its old record, if a person says so."""

from datetime import datetime

from django.db import transaction
from django.db.models import Q, QuerySet

from fleet.flow.closing import close_all, give_up
from fleet.flow.targets import count_in, count_out
from fleet.flow.wakes import wake
from fleet.models import Agent, AgentPresence, AgentState, Command, JobAgent, new_id
from fleet.rules.command_states import HELD, WAITING, CommandState
from fleet.rules.refusals import Conflict
from scheduler.public import Actor, record_act

SET_UP_ANEW = "the PC was set up anew"
# What makes a row the one that a machine speaks for; it moves to the old record.
_IDENTITY = (
    "uuid",
    "uuid_text",
    "reported_name",
    "facts",
    "zone",
    "schedules_etag",
    "credential_hash",
    "next_credential_hash",
    "next_credential_at",
    "credential_at",
    "enrolment_token_id",
    "enrolment_nonce_hash",
    "fingerprint",
    "epoch",
    "boot_id",
)


def likely_predecessors(agent: Agent) -> QuerySet[Agent]:
    """The records that the PC may have had before: of the same machine, or of the same name."""
    alike = Q(reported_name=agent.reported_name)
    if agent.fingerprint:
        alike |= Q(fingerprint=agent.fingerprint)
    others = Agent.objects.filter(alike).exclude(pk=agent.pk)
    return others.exclude(state=AgentState.REVOKED)


def take_over_record(
    agent: Agent, old: Agent, *, actor: Actor, now: datetime, reason: str = ""
) -> Agent:
    """Let the machine of `agent` go on under the record `old`; return that record.

    Name, groups and history are the old record's. What its jobs had done is gone with the old
    system, so every schedule finds the PC due; what it was not given yet it gets. The record
    `agent` is revoked. Conflict where one of the two is revoked, or both are the same.
    """
    if agent.pk == old.pk:
        raise Conflict(f"{agent.name} is that record already")
    with transaction.atomic():
        rows = Agent.objects.filter(pk__in=[agent.pk, old.pk]).exclude(state=AgentState.REVOKED)
        standing = {row.pk: row for row in rows.order_by("pk").select_for_update()}
        for asked in (agent, old):
            if asked.pk not in standing:
                raise Conflict(f"{asked.name} is revoked; only a PC that stands can be replaced")
        _end_commands(agent, old, now)
        _move_identity(standing[agent.pk], old, now)
        count_out(agent)
        _begin_anew(old, now)
        wake([old.pk])
        _note(agent, old, actor=actor, reason=reason, now=now)
    return Agent.objects.get(pk=old.pk)


def _end_commands(agent: Agent, old: Agent, now: datetime) -> None:
    """What the new record was to do, nobody does; what the old system held, nobody answers for."""
    commands = Command.objects.filter(agent=agent, state__in=WAITING)
    close_all(commands, CommandState.CANCELLED, reason=SET_UP_ANEW, now=now)
    held = Command.objects.filter(agent__in=[agent, old], state__in=HELD)
    give_up(held, reason=SET_UP_ANEW, now=now)


def _move_identity(agent: Agent, old: Agent, now: datetime) -> None:
    identity = {name: getattr(agent, name) for name in _IDENTITY}
    left = new_id()
    Agent.objects.filter(pk=agent.pk).update(
        uuid=left,
        uuid_text=str(left),
        state=AgentState.REVOKED,
        state_reason=f"it is {old.name} again",
        revoked_at=now,
        credential_hash="",
        next_credential_hash="",
        enrolment_nonce_hash="",
    )
    Agent.objects.filter(pk=old.pk).update(
        **identity,
        state=AgentState.ACTIVE,
        state_reason="",
        rival_fingerprint="",
        rival_seen_at=None,
    )
    heard = {row.pk: row for row in AgentPresence.objects.filter(pk__in=[agent.pk, old.pk])}
    AgentPresence.objects.filter(pk=old.pk).update(
        seq=heard[agent.pk].seq,
        last_seen_at=heard[agent.pk].last_seen_at,
        # A number that went out never goes out again.
        handouts=max(row.handouts for row in heard.values()),
    )


def _begin_anew(old: Agent, now: datetime) -> None:
    JobAgent.objects.filter(agent=old).delete()
    count_out(old)
    count_in(Agent.objects.get(pk=old.pk), now=now)


def _note(agent: Agent, old: Agent, *, actor: Actor, reason: str, now: datetime) -> None:
    record_act(
        actor,
        "take over record",
        object_kind="agent",
        object_id=agent.uuid_text,
        before={"name": agent.name, "identity_of_the_record": old.uuid_text},
        after={"name": old.name},
        reason=reason,
        now=now,
    )
