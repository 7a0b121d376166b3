"""Tokens with which PCs enrol: made, shown once, and withdrawn."""

from datetime import datetime, timedelta

from django.db import transaction

from fleet.models import EnrolmentToken, Group
from fleet.operations.tokens import Purpose, kept_hash, new_token
from fleet.rules.problems import Problem
from fleet.rules.refusals import Invalid
from scheduler.public import Actor, record_act

MOST_USES = 5_000
SHORTEST, DEFAULT_TTL, LONGEST = timedelta(minutes=1), timedelta(hours=24), timedelta(days=7)


def make_enrolment_token(
    *,
    group: Group | None = None,
    uses: int = 1,
    ttl: timedelta = DEFAULT_TTL,
    needs_acceptance: bool | None = None,
    actor: Actor,
    now: datetime,
) -> tuple[EnrolmentToken, str]:
    """Return a new token's row and its text, which is kept nowhere; Invalid outside the bounds.

    PCs that enrol with a token for several wait until somebody accepts them, unless
    `needs_acceptance` says otherwise.
    """
    _require_bounds(uses, ttl)
    token = new_token(Purpose.ENROLMENT)
    waits = uses > 1 if needs_acceptance is None else needs_acceptance
    with transaction.atomic():
        row = EnrolmentToken.objects.create(
            public_id=token.public_id,
            secret_hash=kept_hash(token),
            group=group,
            max_uses=uses,
            needs_acceptance=waits,
            expires_at=now + ttl,
            created_at=now,
            created_by=actor.name,
        )
        record_act(
            actor,
            "create",
            object_kind="enrolment token",
            object_id=row.public_id,
            after={
                "group": group.slug if group else None,
                "uses": uses,
                "expires_at": row.expires_at.isoformat(),
                "needs_acceptance": waits,
            },
            now=now,
        )
    return row, token.text


def revoke_enrolment_token(row: EnrolmentToken, *, actor: Actor, now: datetime) -> None:
    """Withdraw a token: nobody enrols with it any more. Twice is once."""
    with transaction.atomic():
        standing = EnrolmentToken.objects.filter(pk=row.pk, revoked_at=None)
        if standing.update(revoked_at=now):
            record_act(
                actor, "revoke", object_kind="enrolment token", object_id=row.public_id, now=now
            )


def _require_bounds(uses: int, ttl: timedelta) -> None:
    problems = []
    if not 1 <= uses <= MOST_USES:
        problems.append(Problem("uses", f"write a number from 1 to {MOST_USES}"))
    if not SHORTEST <= ttl <= LONGEST:
        problems.append(Problem("ttl", "write a time from 1m to 7d"))
    if problems:
        raise Invalid(problems)
