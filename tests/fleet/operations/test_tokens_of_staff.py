"""API tokens of staff."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from fleet.models import ApiToken
from fleet.operations.tokens import Purpose, matches, parse_token
from fleet.operations.tokens_of_staff import make_api_token, revoke_api_token
from fleet.rules.refusals import Invalid
from scheduler.models import AuditEntry
from scheduler.public import Actor
from tests.fleet.make import NOW

pytestmark = pytest.mark.django_db
ALICE = Actor("user", "alice")


def member(**fields: Any) -> User:
    return User.objects.create(username="bob", **({"is_staff": True} | fields))


def test_a_token_is_shown_once_and_kept_as_a_hash() -> None:
    row, text = make_api_token(member(), name="backup", actor=ALICE, now=NOW)

    token = parse_token(text, Purpose.API)
    assert token is not None
    assert (row.public_id, row.expires_at) == (token.public_id, NOW + timedelta(days=90))
    assert matches(token, row.secret_hash)
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.object_id) == ("create", row.public_id)
    assert token.secret not in f"{entry.after}{row.__dict__}"


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"ttl": timedelta(days=90, seconds=1)}, "ttl"),
        ({"ttl": timedelta(seconds=59)}, "ttl"),
        ({"name": "x" * 101}, "name"),
    ],
)
def test_a_token_outside_the_bounds_is_not_made(options: Any, field: str) -> None:
    with pytest.raises(Invalid) as refusal:
        make_api_token(member(), actor=ALICE, now=NOW, **options)

    assert refusal.value.field == field
    assert ApiToken.objects.count() == AuditEntry.objects.count() == 0


@pytest.mark.parametrize("fields", [{"is_staff": False}, {"is_active": False}])
def test_only_active_staff_get_a_token(fields: Any) -> None:
    with pytest.raises(Invalid):
        make_api_token(member(**fields), actor=ALICE, now=NOW)

    assert ApiToken.objects.count() == 0


def test_a_token_is_revoked_once() -> None:
    row, _ = make_api_token(member(), actor=ALICE, now=NOW)

    revoke_api_token(row, actor=ALICE, now=NOW)
    revoke_api_token(row, actor=ALICE, now=NOW + timedelta(hours=1))

    row.refresh_from_db()
    assert row.revoked_at == NOW
    assert AuditEntry.objects.filter(action="revoke").count() == 1
