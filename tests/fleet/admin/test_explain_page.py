"""Why a schedule fires or does not, on its page."""

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from fleet.models import Evaluation, Freeze, JobAgent
from tests.fleet.admin.conftest import Visit
from tests.fleet.admin.reading import Page
from tests.fleet.make import make_agent, make_group, make_job, make_schedule, make_schedule_agent

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)


def gates(client: Client, key: int, query: str = "") -> dict[str, str]:
    """What the page says of each gate."""
    html = client.get(reverse("admin:fleet_schedule_explain", args=[key]) + query).content.decode()
    names = [element.text for element in Page(html).all("strong")]
    verdicts = [element.text for element in Page(html).all("span", class_="pill")]
    wanted = [verdict for verdict in verdicts if verdict in {"passes", "stops"}]
    return dict(zip(names[-len(wanted) :], wanted, strict=True))


def test_every_gate_is_shown_with_its_verdict(root: Client) -> None:
    schedule = make_schedule("nightly", target={})
    Freeze.objects.update(is_set=True, reason="holiday")

    found = gates(root, schedule.pk)

    assert list(found)[:3] == ["frozen", "disabled", "runs on agent"]
    assert (found["frozen"], found["disabled"], found["no target"]) == ("stops", "passes", "stops")


def test_one_pc_is_explained_by_its_name(root: Client) -> None:
    agent = make_agent("pc-a", last_seen_at=timezone.now())
    schedule = make_schedule("nightly")
    make_schedule_agent(schedule, agent, due_at=timezone.now() - DAY)

    page = root.get(reverse("admin:fleet_schedule_explain", args=[schedule.pk]), {"agent": "PC-A"})

    assert page.context["told"].agent.name == "pc-a"


def test_the_past_is_what_was_kept(root: Client) -> None:
    now = timezone.now()
    schedule = make_schedule("nightly")
    Evaluation.objects.create(
        schedule=schedule, since=now - 3 * DAY, until=now - DAY, reason="outside window"
    )
    at = timezone.localtime(now - 2 * DAY).strftime("%Y-%m-%d %H:%M")

    told = root.get(
        reverse("admin:fleet_schedule_explain", args=[schedule.pk]), {"at": at}
    ).context["told"]

    assert (told.tense, told.reason) == ("past", "outside window")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"agent": "nobody"}, "there is no PC"),
        ({"at": "soon"}, "write a date"),
        ({"at": "0001-01-01 00:00"}, "write a date"),
        ({"at": "9999-12-31 23:59"}, "write a date"),
    ],
    ids=range(4),
)
def test_a_question_that_cannot_be_is_said_at_its_field(
    query: dict[str, str], words: str, root: Client
) -> None:
    schedule = make_schedule("nightly")

    answer = root.get(reverse("admin:fleet_schedule_explain", args=[schedule.pk]), query)

    assert answer.status_code == 200
    assert words in answer.content.decode()


def test_coverage_counts_who_did_the_job(root: Client) -> None:
    done, waits = make_agent("done"), make_agent("waits")
    make_group("office", done, waits)
    schedule = make_schedule("nightly", job=make_job("patch"), target={"groups": ["office"]})
    JobAgent.objects.create(
        job=schedule.job,
        agent=done,
        last_state="succeeded",
        last_version="1",
        last_ended_at=timezone.now(),
        last_success_at=timezone.now(),
        last_success_version="1",
    )

    part = root.get(reverse("admin:fleet_schedule_coverage", args=[schedule.pk]))
    table = root.get(reverse("admin:fleet_schedule_covered", args=[schedule.pk]), {"state": "ok"})

    assert "1 of 2 PCs" in part.content.decode()
    assert [row.name for row in table.context["rows"]] == ["done"]


def test_a_schedule_whose_stored_manifest_cannot_be_read_still_has_its_pages(root: Client) -> None:
    schedule = make_schedule("nightly")
    type(schedule).objects.update(manifest={"id": "nightly", "when": "?"}, fingerprint="x")

    for page in ("overview", "preview", "explain", "coverage", "covered", "yaml", "change"):
        answer = root.get(reverse(f"admin:fleet_schedule_{page}", args=[schedule.pk]))
        assert answer.status_code == 200, page
    listed = root.get(reverse("admin:fleet_schedule_changelist")).content.decode()
    assert "cannot be read" in listed


def test_who_may_not_see_schedules_is_told_nothing(visit: Visit) -> None:
    schedule = make_schedule("nightly")
    client = visit("nobody")

    for page in ("overview", "preview", "explain", "coverage", "covered"):
        answer = client.get(reverse(f"admin:fleet_schedule_{page}", args=[schedule.pk]))
        assert answer.status_code == 403, page
