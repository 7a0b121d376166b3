"""A token opens what its owner may do now; every failure reads the same."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone

from fleet.models import ApiToken
from fleet.operations import tokens
from tests.fleet.operator_api.callers import FAR, LONG_AGO, Caller, make_token, make_user, ok

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner() -> User:
    return make_user("viewer")


def refused(answer: object) -> None:
    """Assert the one 401."""
    body = ok(answer, 401)  # type: ignore[arg-type]  # whatever the client answers
    assert body["detail"] == "The token is not valid."
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="kanade"'  # type: ignore[attr-defined]


def test_a_token_opens_what_its_owner_may_read(owner: User) -> None:
    assert ok(Caller(owner).get("agents/"))["results"] == []


def test_without_a_token_the_answer_asks_for_one() -> None:
    answer = Caller().get("agents/")

    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="kanade"'


@pytest.mark.parametrize(
    "fields",
    [{"expires_at": LONG_AGO}, {"revoked_at": LONG_AGO}, {"secret_hash": "0" * 64}],
    ids=["expired", "revoked", "another secret"],
)
def test_a_token_that_opens_nothing_any_more_is_refused(
    owner: User, fields: dict[str, object]
) -> None:
    row, text = make_token(owner, **fields)

    refused(Caller(token=text).get("agents/"))
    row.refresh_from_db()
    assert row.last_used_at is None


def test_the_token_of_somebody_who_left_is_refused(owner: User) -> None:
    caller = Caller(owner)
    User.objects.filter(pk=owner.pk).update(is_active=False)

    refused(caller.get("agents/"))


@pytest.mark.parametrize(
    "text",
    ["", "kap1", "kap1_0123456789abcdef_" + "A" * 43 + "_00000000", "é", "x" * 10_000, "a b c"],
)
def test_a_text_that_is_no_token_is_refused(text: str) -> None:
    refused(Caller().get("agents/", authorization=f"Bearer {text}"))


@pytest.mark.parametrize("purpose", [tokens.Purpose.AGENT, tokens.Purpose.ENROLMENT])
def test_a_token_of_another_purpose_is_refused(owner: User, purpose: tokens.Purpose) -> None:
    other = tokens.new_token(purpose)
    make_token(owner, public_id=other.public_id, secret_hash=tokens.kept_hash(other))

    refused(Caller(token=other.text).get("agents/"))


def test_a_typing_error_is_refused_before_any_query(
    owner: User, django_assert_num_queries: object
) -> None:
    _, text = make_token(owner)
    wrong = text[:-1] + ("0" if text[-1] != "0" else "1")

    with django_assert_num_queries(0):  # type: ignore[operator]
        refused(Caller(token=wrong).get("agents/"))


def test_the_scheme_is_read_in_any_case(owner: User) -> None:
    _, text = make_token(owner)

    assert Caller().get("agents/", authorization=f"bEARER {text}").status_code == 200


def test_another_scheme_is_nobodys() -> None:
    assert Caller().get("agents/", authorization="Basic YTpi").status_code == 401


def test_a_token_in_the_address_is_not_read(owner: User) -> None:
    _, text = make_token(owner)

    assert Caller().get(f"agents/?token={text}").status_code == 401


def test_a_demoted_owners_token_loses_the_right_at_once(owner: User) -> None:
    caller = Caller(owner)
    assert caller.get("agents/").status_code == 200
    owner.groups.remove(Group.objects.get(name="viewer"))

    assert caller.get("agents/").status_code == 403


def test_the_token_of_somebody_who_is_no_staff_any_more_opens_nothing(owner: User) -> None:
    caller = Caller(owner)
    User.objects.filter(pk=owner.pk).update(is_staff=False)

    assert caller.get("agents/").status_code == 403


def test_a_use_is_noted_once_a_minute(owner: User) -> None:
    row, text = make_token(owner)
    caller = Caller(token=text)
    caller.get("agents/")
    first = ApiToken.objects.get().last_used_at
    caller.get("agents/")

    assert first is not None
    assert ApiToken.objects.get().last_used_at == first
    earlier = timezone.now() - timedelta(seconds=61)
    ApiToken.objects.filter(pk=row.pk).update(last_used_at=earlier)
    caller.get("agents/")
    noted = ApiToken.objects.get().last_used_at
    assert noted is not None
    assert noted > earlier


def test_what_is_stored_of_a_token_opens_nothing(owner: User) -> None:
    row, _ = make_token(owner)
    forged = tokens.Token(tokens.Purpose.API, row.public_id, row.secret_hash[:43]).text

    refused(Caller(token=forged).get("agents/"))


def test_a_session_reads_as_well(owner: User) -> None:
    client = Client()
    client.force_login(owner)

    assert client.get("/api/v1/agents/").status_code == 200


def test_a_bad_token_is_not_saved_by_a_session(owner: User) -> None:
    caller = Caller(token="kap1_nonsense")
    caller.client.force_login(owner)

    refused(caller.get("agents/"))


def test_a_token_lives_until_it_expires(owner: User) -> None:
    _, text = make_token(owner, expires_at=FAR)

    assert Caller(token=text).get("agents/").status_code == 200
