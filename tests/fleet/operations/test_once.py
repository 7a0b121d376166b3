"""A request with a key is done once, however often it is sent."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from fleet.models import Execution, RequestKey
from fleet.operations.once import Done, once
from fleet.rules.refusals import Conflict, Frozen
from tests.fleet.make import NOW, make_execution

pytestmark = pytest.mark.django_db


@pytest.fixture
def user() -> User:
    return User.objects.create_user("iris")


def send(user: User, key: str = "k", request: object = "run", **late: float) -> Done:
    return once(key, request, user_id=user.pk, now=NOW + timedelta(**late), act=make_execution)


def test_the_same_request_again_is_answered_with_what_it_made(user: User) -> None:
    first, second = send(user), send(user, minutes=5)

    assert (first.repeated, second.repeated) == (False, True)
    assert second.execution == first.execution
    assert Execution.objects.count() == 1


def test_the_same_key_with_another_request_is_refused(user: User) -> None:
    send(user)

    with pytest.raises(Conflict, match="another request"):
        send(user, request="something else")
    assert Execution.objects.count() == 1


def test_the_order_of_keys_does_not_make_another_request(user: User) -> None:
    send(user, request={"a": 1, "b": 2})

    assert send(user, request={"b": 2, "a": 1}).repeated


def test_other_keys_and_other_people_are_apart(user: User) -> None:
    other = User.objects.create_user("judy")
    send(user)

    assert not send(user, key="other").repeated
    assert not send(other).repeated
    assert Execution.objects.count() == 3


@pytest.mark.parametrize(("hours", "repeated"), [(24, True), (24.001, False)])
def test_a_key_is_kept_for_a_day(user: User, hours: float, repeated: bool) -> None:
    send(user)

    assert send(user, hours=hours).repeated is repeated
    assert RequestKey.objects.count() == 1


def test_what_is_refused_leaves_no_trace(user: User) -> None:
    def refuse() -> Execution:
        raise Frozen("the fleet is frozen")

    with pytest.raises(Frozen):
        once("k", "run", user_id=user.pk, now=NOW, act=refuse)

    assert RequestKey.objects.count() == 0
    assert not send(user).repeated


def test_an_execution_that_is_not_kept_any_more_is_not_made_anew(user: User) -> None:
    send(user)
    Execution.objects.all().delete()

    with pytest.raises(Conflict, match="not kept"):
        send(user)
    assert Execution.objects.count() == 0
