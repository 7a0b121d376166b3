"""A page brings no more than it needs, and shows times where its reader is."""

from datetime import UTC, datetime

import pytest
from django.contrib.staticfiles import finders
from django.test import Client
from django.urls import reverse

from fleet.models import Evaluation
from tests.fleet.admin.reading import Page
from tests.fleet.make import make_schedule

pytestmark = pytest.mark.django_db

MOST_BYTES = 250 * 1024
PAGES = [
    "admin:index",
    "admin:fleet_schedule_changelist",
    "admin:fleet_schedule_add",
    "admin:fleet_job_add",
    "admin:fleet_result_changelist",
    "admin:fleet_freeze_changelist",
    "admin:scheduler_task_changelist",
]


def files(page: Page) -> set[str]:
    """The files that a page asks for, by their names below the static folder."""
    found = [element.attributes.get("src", "") for element in page.all("script")]
    found += [element.attributes.get("href", "") for element in page.all("link")]
    return {name.removeprefix("/static/") for name in found if name.startswith("/static/")}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_with_all_its_files_is_light(name: str, root: Client) -> None:
    answer = root.get(reverse(name))
    sizes = [len(answer.content)]
    for file in files(Page(answer.content.decode())):
        path = finders.find(file)
        assert path, file
        with open(path, "rb") as content:
            sizes.append(len(content.read()))

    assert sum(sizes) < MOST_BYTES


@pytest.mark.parametrize("name", PAGES)
def test_a_page_needs_no_jquery(name: str, root: Client) -> None:
    needed = files(Page(root.get(reverse(name)).content.decode()))

    assert not [file for file in needed if "jquery" in file.lower() or "xregexp" in file]


def shown(client: Client, key: int) -> str:
    html = client.get(reverse("admin:fleet_schedule_overview", args=[key])).content.decode()
    return " | ".join(" ".join(element.text.split()) for element in Page(html).all("time"))


def test_times_are_shown_in_the_zone_of_the_viewer_with_utc_beside(root: Client) -> None:
    schedule = make_schedule("nightly")
    since = datetime(2026, 12, 1, 20, 30, tzinfo=UTC)
    Evaluation.objects.create(schedule=schedule, since=since, reason="all done")

    root.cookies["kanade_zone"] = "Asia/Tokyo"
    assert "2026-12-02 05:30 JST · 12-01 20:30 UTC" in shown(root, schedule.pk)
    root.cookies["kanade_zone"] = "Europe/Budapest"
    assert "2026-12-01 21:30 CET · 20:30 UTC" in shown(root, schedule.pk)


@pytest.mark.parametrize("zone", ["Mars/Base", "../../etc/passwd", "", "A" * 5000])
def test_an_unknown_zone_is_the_servers(zone: str, root: Client) -> None:
    schedule = make_schedule("nightly")
    since = datetime(2026, 12, 1, 20, 30, tzinfo=UTC)
    Evaluation.objects.create(schedule=schedule, since=since, reason="all done")
    root.cookies["kanade_zone"] = zone

    assert "2026-12-01 20:30 UTC" in shown(root, schedule.pk)
