"""A PC enrols: a token becomes an agent and its credential, once, however often it is asked."""

import logging
from dataclasses import dataclass, field
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import F

from fleet.flow.joining import join
from fleet.models import Agent, AgentPresence, AgentState, EnrolmentToken, new_id
from fleet.operations.tokens import (
    Purpose,
    Token,
    kept_hash,
    matches,
    new_token,
    parse_token,
    peppered,
)
from fleet.rules.facts import Facts
from scheduler.public import Actor, record_act

logger = logging.getLogger(__name__)

MOST_TRIES = 5
LONGEST_NAME = 63
NO_HASH = "0" * 64


class EnrolmentRefusedError(Exception):
    """The token opens nothing: unknown, used up, expired or withdrawn. Which one is not told."""


@dataclass(frozen=True, slots=True)
class Newcomer:
    """What a PC says when it enrols. The nonce is random and saved by the PC before it asks."""

    token: str = field(repr=False)
    name: str
    nonce: str = field(repr=False)
    fingerprint: str
    facts: Facts
    address: str = ""


@dataclass(frozen=True, slots=True)
class Enrolled:
    """The agent, and its credential in the clear."""

    agent: Agent
    credential: str = field(repr=False)


def enrol(newcomer: Newcomer, *, now: datetime) -> Enrolled:
    """Make an agent of the PC; EnrolmentRefusedError when the token opens nothing.

    A reply may be lost. The same token with the same nonce is answered with a fresh credential for
    the same agent and counts as no further use, until that agent has made its first exchange.
    """
    token = parse_token(newcomer.token, Purpose.ENROLMENT)
    if token is None:
        raise EnrolmentRefusedError
    for attempt in range(MOST_TRIES):
        try:
            with transaction.atomic():
                return _enrol(newcomer, token, now)
        except IntegrityError:
            # Another token's PC has just taken the name.
            if attempt == MOST_TRIES - 1:
                raise
    raise EnrolmentRefusedError  # pragma: no cover  # the loop returns or raises


def _enrol(newcomer: Newcomer, token: Token, now: datetime) -> Enrolled:
    row = _valid_token(token, now)
    nonce_hash = peppered("nonce", newcomer.nonce)
    known = Agent.objects.filter(
        enrolment_token_id=row.pk,
        enrolment_nonce_hash=nonce_hash,
        state__in=[AgentState.ACTIVE, AgentState.PENDING],
        presence__last_seen_at=None,
    ).first()
    if known is not None:
        return _again(known, newcomer, now)
    free = EnrolmentToken.objects.filter(pk=row.pk, used__lt=F("max_uses"))
    if not free.update(used=F("used") + 1):
        logger.warning("a used enrolment token was presented", extra={"token": row.public_id})
        raise EnrolmentRefusedError
    return _make_agent(newcomer, row, nonce_hash, now)


def _valid_token(token: Token, now: datetime) -> EnrolmentToken:
    """Return the token's row, locked: PCs with one token enrol one after the other."""
    row = EnrolmentToken.objects.select_for_update().filter(public_id=token.public_id).first()
    # Compared in any case, so that the time tells nothing either.
    right = matches(token, row.secret_hash if row else NO_HASH)
    if row is None or not right or row.revoked_at is not None or row.expires_at <= now:
        raise EnrolmentRefusedError
    return row


def _again(agent: Agent, newcomer: Newcomer, now: datetime) -> Enrolled:
    credential = new_token(Purpose.AGENT, agent.uuid_text)
    # The first one stays valid until this one is used: its reply may have arrived after all.
    Agent.objects.filter(pk=agent.pk).update(
        next_credential_hash=kept_hash(credential), next_credential_at=now
    )
    _note("enrol again", agent, newcomer, now)
    return Enrolled(agent, credential.text)


def _make_agent(
    newcomer: Newcomer, row: EnrolmentToken, nonce_hash: str, now: datetime
) -> Enrolled:
    uuid = new_id()
    credential = new_token(Purpose.AGENT, str(uuid))
    name = _free_name(newcomer.name)
    agent = Agent.objects.create(
        uuid=uuid,
        uuid_text=str(uuid),
        name=name,
        name_fold=name.casefold(),
        reported_name=newcomer.name,
        state=AgentState.PENDING if row.needs_acceptance else AgentState.ACTIVE,
        facts=newcomer.facts.document,
        zone=newcomer.facts.zone,
        enrolled_at=now,
        credential_hash=kept_hash(credential),
        credential_at=now,
        enrolment_token_id=row.pk,
        enrolment_nonce_hash=nonce_hash,
        fingerprint=newcomer.fingerprint,
    )
    AgentPresence.objects.create(agent=agent)
    join(agent, row.group, now=now)
    _note("enrol", agent, newcomer, now, token=row)
    return Enrolled(agent, credential.text)


def _free_name(name: str) -> str:
    """Return the name, or the name with a number where another PC has it.

    A revoked PC gives its name up: a machine that was set up anew is called as before.
    """
    holder = Agent.objects.filter(name_fold=name.casefold()).first()
    if holder is None:
        return name
    if holder.state == AgentState.REVOKED:
        aside = f"{holder.name}~{holder.uuid_text[-12:]}"
        Agent.objects.filter(pk=holder.pk).update(name=aside, name_fold=aside.casefold())
        return name
    stem = name[: LONGEST_NAME - 5]
    taken = set(
        Agent.objects.filter(name_fold__startswith=f"{stem.casefold()}-").values_list(
            "name_fold", flat=True
        )
    )
    number = 2
    while f"{stem}-{number}".casefold() in taken:
        number += 1
    return f"{stem}-{number}"


def _note(
    action: str,
    agent: Agent,
    newcomer: Newcomer,
    now: datetime,
    *,
    token: EnrolmentToken | None = None,
) -> None:
    after: dict[str, object] = {"name": agent.name, "state": agent.state}
    if token is not None:
        group = token.group.slug if token.group else None
        after |= {"token": token.public_id, "group": group}
    actor = Actor("agent", agent.name, address=newcomer.address)
    record_act(actor, action, object_kind="agent", object_id=agent.uuid_text, after=after, now=now)
