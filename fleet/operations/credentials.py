"""Agents' credentials: who presents one, and how it is replaced without ever locking one out."""

from datetime import UTC, datetime, timedelta

from django.db.models import Q

from fleet.models import Agent
from fleet.operations.tokens import Purpose, Token, kept_hash, matches, new_token, parse_token

ROTATED_AFTER = timedelta(days=30)
# An offer that was not taken up by then is replaced: its reply was lost.
OFFERED_AGAIN_AFTER = timedelta(hours=1)
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def credential_in(text: str) -> Token | None:
    """Return the credential that `text` spells, or None."""
    return parse_token(text, Purpose.AGENT)


def holds(agent: Agent, credential: Token, *, now: datetime) -> bool:
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


def offer_credential(agent: Agent, *, now: datetime) -> str | None:
    """Return a new credential for the agent when it is time for one.

    The old one stays valid until the new one is used, so that a lost reply locks nobody out.
    """
    if now - agent.credential_at < ROTATED_AFTER:
        return None
    credential = new_token(Purpose.AGENT, agent.uuid_text)
    # Of two exchanges at once only one makes an offer: the other's would void it.
    due = Q(next_credential_hash="") | Q(next_credential_at__lte=now - OFFERED_AGAIN_AFTER)
    standing = Agent.objects.filter(due, pk=agent.pk, credential_hash=agent.credential_hash)
    if not standing.update(next_credential_hash=kept_hash(credential), next_credential_at=now):
        return None
    return credential.text
