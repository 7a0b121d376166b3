"""The freeze: its page, its two acts, and the banner on every page."""

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from fleet.models import Freeze, Schedule
from tests.fleet.admin.conftest import Visit
from tests.fleet.admin.posting import said
from tests.fleet.admin.reading import Page
from tests.fleet.make import make_command, make_execution, make_schedule

pytestmark = pytest.mark.django_db

PAGE = "admin:fleet_freeze_changelist"


def stored() -> Freeze:
    return Freeze.objects.get(pk=1)


def post(client: Client, act: str, data: dict[str, str]) -> Page:
    answer = client.post(reverse(f"admin:fleet_freeze_{act}"), data, follow=True)
    return Page(answer.content.decode())


def banner(client: Client, page: str = "admin:index") -> str:
    html = client.get(reverse(page)).content.decode()
    found = Page(html).all("div", class_="freeze-banner")
    return " | ".join(" ".join(element.text.split()) for element in found)


def test_the_fleet_is_frozen_with_a_reason_and_thawed(visit: Visit) -> None:
    client = visit("operator")

    post(client, "set", {"reason": "holiday", "tz": "utc"})
    assert (stored().is_set, stored().reason, stored().set_by) == (True, "holiday", "operator")
    post(client, "clear", {"reason": ""})
    assert stored().is_set is False


def test_a_wall_clock_becomes_the_instant_that_it_means(root: Client) -> None:
    typed = {"reason": "x", "starts": "2027-07-01 18:00", "ends": "2027-07-02", "tz": "Asia/Tokyo"}

    post(root, "set", typed)

    assert stored().starts == "2027-07-01T09:00:00+00:00"
    assert (stored().ends, stored().tz) == ("2027-07-02", "Asia/Tokyo")


BAD = [
    ({"reason": ""}, "required"),
    ({"reason": "a\0b"}, "Null"),
    ({"reason": "x", "starts": "soon"}, "no date"),
    ({"reason": "x", "ends": "2027-02-30 10:00"}, "no date"),
    ({"reason": "x", "starts": "2027-07-02", "ends": "2027-07-01"}, "before"),
    ({"reason": "x", "tz": "Mars/Base"}, "Mars/Base"),
]


@pytest.mark.parametrize(("typed", "words"), BAD, ids=range(len(BAD)))
def test_a_freeze_that_cannot_be_is_refused_at_its_field(
    typed: dict[str, str], words: str, root: Client
) -> None:
    assert words in said(post(root, "set", typed))
    assert stored().is_set is False


@pytest.mark.parametrize("role", ["viewer", "approver"])
def test_who_may_not_freeze_is_refused_and_sees_no_button(role: str, visit: Visit) -> None:
    client = visit(role)

    for act in ("set", "clear"):
        answer = client.post(reverse(f"admin:fleet_freeze_{act}"), {"reason": "x"})
        assert answer.status_code == 403
    assert stored().is_set is False
    assert client.get(reverse(PAGE)).context["verbs"] == []


def test_a_banner_stands_on_every_page_while_frozen(root: Client) -> None:
    Freeze.objects.update(is_set=True, reason="<b>stop</b>")

    for page in ("admin:index", "admin:fleet_job_changelist", "admin:auth_user_add", PAGE):
        assert "The fleet is frozen. <b>stop</b> Until somebody thaws it." in banner(root, page)


def test_there_is_no_banner_while_the_fleet_is_live(root: Client) -> None:
    assert banner(root) == ""


def test_a_freeze_to_come_is_announced(root: Client) -> None:
    Freeze.objects.update(is_set=True, reason="later", starts="2190-01-01", tz="utc")

    assert banner(root).startswith("A freeze begins 2190-01-01 00:00")


def test_an_unreadable_freeze_is_red_and_can_only_be_set_anew(root: Client) -> None:
    Freeze.objects.update(is_set=True, starts="no date at all")

    html = root.get(reverse("admin:index")).content.decode()
    assert len(list(Page(html).all("div", class_="freeze-unreadable"))) == 1
    assert banner(root).startswith("Frozen: unreadable.")
    assert "set a valid one first" in said(post(root, "clear", {"reason": ""}))
    post(root, "set", {"reason": "known again", "tz": "utc"})
    assert (stored().is_set, stored().starts) == (True, "")


def test_no_freeze_row_at_all_is_shown_as_frozen(root: Client) -> None:
    Freeze.objects.all().delete()

    assert banner(root).startswith("Frozen: unreadable.")
    assert root.get(reverse(PAGE)).status_code == 200


def test_the_page_tells_what_a_freeze_would_hold(root: Client) -> None:
    make_schedule()
    make_schedule(enabled=False)
    calendar = make_schedule("clock", when={"calendar": {"at": "09:00"}})
    soon = timezone.now() + timedelta(hours=1)
    Schedule.objects.filter(pk=calendar.pk).update(next_fire_at=soon)
    make_command()
    make_command(execution=make_execution(override_freeze=True, reason="urgent"))

    held = root.get(reverse(PAGE)).context["page"].held

    assert (held.reconcilers, [one.slug for one in held.calendars]) == (1, ["clock"])
    assert (held.waiting, held.overridden) == (1, 1)


def test_a_freeze_with_an_end_tells_what_expires_before_it(root: Client) -> None:
    make_command(deadline_at=timezone.now() + timedelta(days=1))
    make_command(deadline_at=timezone.now() + timedelta(days=400))
    ends = (timezone.now() + timedelta(days=30)).strftime("%Y-%m-%d")
    Freeze.objects.update(is_set=True, ends=ends, tz="utc")

    held = root.get(reverse(PAGE)).context["page"].held

    assert (held.waiting, held.expiring) == (2, 1)
