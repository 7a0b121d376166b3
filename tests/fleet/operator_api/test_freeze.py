"""The freeze over HTTP: set, read, cleared; what cannot be read is frozen, and says so."""

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.models import Freeze
from tests.fleet.operator_api.callers import Caller, errors, make_user, ok

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator() -> Caller:
    return Caller(make_user("operator"))


def test_no_freeze_is_off(operator: Caller) -> None:
    body = ok(operator.get("freeze/"))

    assert (body["freeze"], body["frozen"], body["state"]) == ("off", False, "not frozen")


@pytest.mark.parametrize("wrap", [False, True], ids=["inner", "whole manifest"])
def test_a_freeze_is_set_at_once(operator: Caller, wrap: bool) -> None:
    inner = {"reason": "year end"}

    body = ok(operator.put("freeze/", {"freeze": inner} if wrap else inner))

    assert (body["frozen"], body["state"]) == (True, "frozen: year end")
    assert body["freeze"] == {"reason": "year end"}
    assert body["set_by"] == "operator"
    assert ok(operator.get("freeze/")) == body


def test_what_is_read_can_be_sent_back(operator: Caller) -> None:
    ok(operator.put("freeze/", {"reason": "a", "from": "2026-12-24", "until": "2027-01-02"}))
    read = ok(operator.get("freeze/"))

    again = ok(operator.put("freeze/", {"freeze": read["freeze"]}))

    assert again["freeze"] == read["freeze"]


def test_a_freeze_to_come_blocks_nothing_today(operator: Caller) -> None:
    begins = timezone.now() + timedelta(days=7)

    body = ok(operator.put("freeze/", {"from": begins.isoformat(), "reason": "moving"}))

    assert body["frozen"] is False
    assert body["starts_at"] == begins.isoformat().replace("+00:00", "Z")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"from": "soon"}, "from"),
        ({"from": "2026-02-30"}, "from"),
        ({"from": "2026-12-02", "until": "2026-12-01"}, "from"),
        ({"reason": 5}, "reason"),
        ({"tz": "Mars/Olympus"}, "tz"),
        ({"untill": "2026-12-01"}, "untill"),
        ({"freeze": {"reson": "x"}}, "freeze.reson"),
        ({"freeze": None}, "freeze"),
        ({"freeze": {}, "is_set": False}, "is_set"),
    ],
)
def test_a_bad_freeze_is_refused_by_path_and_changes_nothing(
    operator: Caller, body: object, field: str
) -> None:
    answer = operator.put("freeze/", body)

    assert answer.status_code == 400
    assert list(errors(answer)) == [field]
    assert ok(operator.get("freeze/"))["freeze"] == "off"


@pytest.mark.parametrize("body", [[], "off", 1, None, True])
def test_a_body_that_is_no_object_is_refused(operator: Caller, body: object) -> None:
    assert operator.put("freeze/", body).status_code == 400


def test_a_thaw_is_one_call_and_twice_is_once(operator: Caller) -> None:
    ok(operator.put("freeze/", {"reason": "x"}))

    assert operator.delete("freeze/").status_code == 204
    assert operator.delete("freeze/").status_code == 204
    assert ok(operator.get("freeze/"))["frozen"] is False


@pytest.mark.parametrize(
    "columns",
    [
        {"starts": "garbage"},
        {"ends": "2026-13-01"},
        {"tz": "Nowhere"},
        {"starts": "2026-12-02", "ends": "2026-12-01"},
    ],
)
def test_a_freeze_that_cannot_be_read_is_frozen_and_only_a_valid_one_thaws(
    operator: Caller, columns: dict[str, str]
) -> None:
    Freeze.objects.filter(pk=1).update(is_set=True, **columns)

    body = ok(operator.get("freeze/"))
    assert body["frozen"] is True
    assert body["state"].startswith("frozen: unreadable")
    assert operator.delete("freeze/").status_code == 409
    assert ok(operator.get("freeze/"))["frozen"] is True
    ok(operator.put("freeze/", {"reason": "repaired"}))
    assert operator.delete("freeze/").status_code == 204
    assert ok(operator.get("freeze/"))["frozen"] is False


def test_no_freeze_row_is_frozen(operator: Caller) -> None:
    Freeze.objects.all().delete()

    body = ok(operator.get("freeze/"))

    assert (body["frozen"], body["set_by"]) == (True, "")
    assert body["state"].startswith("frozen: unreadable")


def test_who_may_only_look_freezes_nothing() -> None:
    viewer = Caller(make_user("viewer"))

    assert ok(viewer.get("freeze/"))["frozen"] is False
    assert viewer.put("freeze/", {"reason": "x"}).status_code == 403
    assert viewer.delete("freeze/").status_code == 403
    assert ok(viewer.get("freeze/"))["frozen"] is False


def test_a_verb_that_the_freeze_does_not_have_is_not_allowed(operator: Caller) -> None:
    answer = operator.post("freeze/", {"reason": "x"})

    assert answer.status_code == 405
    assert ok(operator.get("freeze/"))["frozen"] is False
