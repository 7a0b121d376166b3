"""API tokens: a program calls with its owner's rights of that moment."""

from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction

from fleet.models import ApiToken
from fleet.operations.tokens import Purpose, kept_hash, new_token
from fleet.rules.problems import Problem
from fleet.rules.refusals import Invalid
from scheduler.public import Actor, record_act

SHORTEST, DEFAULT_TTL, LONGEST = timedelta(minutes=1), timedelta(days=90), timedelta(days=90)
MAX_NAME = 100


def make_api_token(
    user: User,
    *,
    ttl: timedelta = DEFAULT_TTL,
    name: str = "",
    actor: Actor,
    now: datetime,
) -> tuple[ApiToken, str]:
    """Return a new token's row and its text, which is kept nowhere; Invalid outside the bounds."""
    problems = []
    if not SHORTEST <= ttl <= LONGEST:
        problems.append(Problem("ttl", "write a time from 1m to 90d"))
    if len(name) > MAX_NAME:
        problems.append(Problem("name", f"write at most {MAX_NAME} characters"))
    if not (user.is_active and user.is_staff):
        problems.append(Problem("user", "only active staff may have tokens"))
    if problems:
        raise Invalid(problems)
    token = new_token(Purpose.API)
    with transaction.atomic():
        row = ApiToken.objects.create(
            public_id=token.public_id,
            secret_hash=kept_hash(token),
            user=user,
            name=name,
            expires_at=now + ttl,
            created_at=now,
        )
        _note(actor, "create", row, now, {"user": user.get_username(), "name": name})
    return row, token.text


def revoke_api_token(row: ApiToken, *, actor: Actor, now: datetime) -> None:
    """Withdraw a token, from its next use on. Twice is once."""
    with transaction.atomic():
        if ApiToken.objects.filter(pk=row.pk, revoked_at=None).update(revoked_at=now):
            _note(actor, "revoke", row, now, None)


def _note(
    actor: Actor, action: str, row: ApiToken, now: datetime, after: dict[str, object] | None
) -> None:
    if after is not None:
        after["expires_at"] = row.expires_at.isoformat()
    record_act(
        actor, action, object_kind="API token", object_id=row.public_id, after=after, now=now
    )
