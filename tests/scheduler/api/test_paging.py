"""Pages are bounded, and a cursor that somebody made up is refused, not a fault."""

import base64
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from scheduler.api.paging import Pages

pytestmark = pytest.mark.django_db


class ByName:
    ordering = "username"


def page(view: object = None, **query: str) -> Pages:
    request = Request(APIRequestFactory().get("/x/", query))
    pages = Pages()
    pages.paginate_queryset(User.objects.all(), request, view)
    return pages


def names(pages: Pages) -> list[str]:
    return [user.username for user in pages.page or ()]


def made_up(position: str) -> str:
    return base64.b64encode(urlencode({"p": position}).encode()).decode()


@pytest.mark.parametrize(
    "position", ["abc", "1.5", "", "9" * 5000, "\0", "1; DROP TABLE", "None", "٣x"]
)
def test_a_position_that_the_column_cannot_hold_is_not_found(position: str) -> None:
    with pytest.raises(NotFound):
        page(cursor=made_up(position))


@pytest.mark.parametrize("cursor", ["AAAAA", "é", "bz0tMQ==", "cj14"])
def test_a_text_that_is_no_cursor_is_not_found(cursor: str) -> None:
    with pytest.raises(NotFound):
        page(cursor=cursor)


def test_a_text_position_with_a_nul_is_not_found() -> None:
    with pytest.raises(NotFound):
        page(ByName(), cursor=made_up("a\0b"))


@pytest.mark.parametrize(("asked", "given"), [("10", 10), ("1000", 200), ("0", 50), ("x", 50)])
def test_a_page_has_at_most_two_hundred_rows(asked: str, given: int) -> None:
    assert page(page_size=asked).page_size == given


def test_rows_come_newest_first_unless_the_view_has_an_order() -> None:
    for name in ("b", "c", "a"):
        User.objects.create_user(name)

    assert names(page()) == ["a", "c", "b"]
    assert names(page(ByName())) == ["a", "b", "c"]


def test_the_next_page_begins_where_the_first_ended() -> None:
    for name in ("a", "b", "c"):
        User.objects.create_user(name)
    first = page(ByName(), page_size="2")
    following = str(first.get_next_link()).split("cursor=")[1].split("&")[0]
    second = page(ByName(), page_size="2", cursor=following.replace("%3D", "="))

    assert names(second) == ["c"]
    assert second.get_next_link() is None
