"""`enroltoken` and `apitoken`."""

from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from fleet.models import ApiToken, EnrolmentToken
from fleet.operations.tokens import Purpose, parse_token
from scheduler.models import AuditEntry
from tests.fleet.make import make_group

pytestmark = pytest.mark.django_db


def told(*arguments: str) -> str:
    """Run a command; return its standard output."""
    out = StringIO()
    call_command(*arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def test_an_enrolment_token_stands_alone_on_the_last_line() -> None:
    group = make_group("lab")

    lines = told("enroltoken", "--group", "LAB", "--uses", "5", "--ttl", "2h").splitlines()

    token = parse_token(lines[-1], Purpose.ENROLMENT)
    row = EnrolmentToken.objects.get()
    assert token is not None
    assert (row.public_id, row.group, row.max_uses) == (token.public_id, group, 5)
    assert row.expires_at - row.created_at == timedelta(hours=2)
    assert row.needs_acceptance is True
    assert AuditEntry.objects.get().actor_kind == "command"


def test_without_options_it_is_for_one_pc_and_a_day() -> None:
    told("enroltoken")

    row = EnrolmentToken.objects.get()
    assert (row.max_uses, row.group, row.needs_acceptance) == (1, None, False)
    assert row.expires_at - row.created_at == timedelta(days=1)


def test_pcs_of_a_token_for_several_can_be_accepted_beforehand() -> None:
    told("enroltoken", "--uses", "5", "--accepted")

    assert EnrolmentToken.objects.get().needs_acceptance is False


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--group", "nope"], 'there is no group "nope"'),
        (["--ttl", "soon"], "--ttl"),
        (["--ttl", "8d"], "from 1m to 7d"),
        (["--uses", "0"], "from 1 to 5000"),
    ],
)
def test_a_bad_option_is_named_and_makes_no_token(arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        told("enroltoken", *arguments)

    assert EnrolmentToken.objects.count() == 0


def test_an_api_token_stands_alone_on_the_last_line() -> None:
    user = User.objects.create(username="bob", is_staff=True)

    lines = told("apitoken", "bob", "--ttl", "30d", "--name", "backup").splitlines()

    token = parse_token(lines[-1], Purpose.API)
    row = ApiToken.objects.get()
    assert token is not None
    assert (row.public_id, row.user, row.name) == (token.public_id, user, "backup")
    assert row.expires_at - row.created_at == timedelta(days=30)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nobody"], 'no user "nobody"'),
        (["bob", "--ttl", "91d"], "from 1m to 90d"),
        (["bob", "--ttl", "x"], "--ttl"),
        (["eve"], "only active staff"),
    ],
)
def test_a_bad_argument_is_named_and_makes_no_api_token(arguments: list[str], message: str) -> None:
    User.objects.create(username="bob", is_staff=True)
    User.objects.create(username="eve")

    with pytest.raises(CommandError, match=message):
        told("apitoken", *arguments)

    assert ApiToken.objects.count() == 0
