"""Agents' credentials: who presents one, and how it is replaced without ever locking one out."""

from datetime import UTC, datetime, timedelta
from typing import Protocol

from django.db.models import Q

from fleet.models import Agent
from fleet.operations.tokens import Purpose, Token, kept_hash, matches, new_token, parse_token

ROTATED_AFTER = timedelta(days=30)
# An offer that was not taken up by then is replaced: its reply was lost.
OFFERED_AGAIN_AFTER = timedelta(hours=1)
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class Holder(Protocol):
    """An agent, as far as its credential goes."""

    @property
    def pk(self) -> int:
        """Its key."""

    @property
    def credential_hash(self) -> str:
        """What is kept of its credential."""

    @property
    def next_credential_hash(self) -> str:
        """What is kept of the one that is offered to it, or nothing."""


def rotated_before(now: datetime) -> datetime:
    """Return the time before which a credential was given that is to be replaced at `now`."""
    return now - ROTATED_AFTER


def credential_in(text: str) -> Token | None:
    """Return the credential that `text` spells, or None."""
    return parse_token(text, Purpose.AGENT)


def holds(agent: Holder, credential: Token, *, now: datetime) -> bool:
    """Answer whether the agent's credential is presented.

    The first use of an offered one makes it the only one.
    """
    if matches(credential, agent.credential_hash):
        return True
    if not agent.next_credential_hash or not matches(credential, agent.next_credential_hash):
        return False
    kept = kept_hash(credential)
    Agent.objects.filter(pk=agent.pk, next_credential_hash=kept).update(
        credential_hash=kept, next_credential_hash="", next_credential_at=None, credential_at=now
    )
    # Two first uses at once are both good; one whose offer was replaced meanwhile is not.
    return Agent.objects.filter(pk=agent.pk, credential_hash=kept).exists()


def offer_credential(agent: Holder, uuid: str, *, now: datetime) -> str | None:
    """Return a new credential for an agent whose own is due, or None while one is on its way.

    The old one stays valid until the new one is used, so that a lost reply locks nobody out.
    """
    credential = new_token(Purpose.AGENT, uuid)
    # Of two exchanges at once only one makes an offer: the other's would void it.
    open_to_offers = Q(next_credential_hash="") | Q(
        next_credential_at__lte=now - OFFERED_AGAIN_AFTER
    )
    due = Agent.objects.filter(
        open_to_offers,
        pk=agent.pk,
        credential_hash=agent.credential_hash,
        credential_at__lte=rotated_before(now),
    )
    if not due.update(next_credential_hash=kept_hash(credential), next_credential_at=now):
        return None
    return credential.text
