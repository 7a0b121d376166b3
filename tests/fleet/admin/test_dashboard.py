"""The front page: how the fleet is, at a glance and without a reload."""

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from fleet.flow.activity import Ended, last_hours
from fleet.flow.overview import overview
from fleet.models import Evaluation, Freeze, Result, Schedule, TickMark, new_id
from tests.fleet.admin.conftest import Visit
from tests.fleet.make import NOW, make_agent, make_execution, make_job, make_schedule

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


def make_result(outcome: str, age: timedelta, schedule: Schedule | None = None) -> None:
    Result.objects.create(
        command_id=new_id(),
        agent_id=1,
        job_id=1,
        revision_id=1,
        job_version="1",
        schedule_id=schedule.pk if schedule else None,
        outcome=outcome,
        received_at=NOW - age,
    )


def test_pcs_are_counted_by_when_they_were_heard() -> None:
    for age in (timedelta(0), timedelta(minutes=2), HOUR, timedelta(days=2)):
        make_agent(last_seen_at=NOW - age)
    make_agent(last_seen_at=None)
    make_agent(state="quarantined")

    assert overview(NOW).pcs == {"online": 2, "stale": 1, "offline": 2, "quarantined": 1}


def test_runs_are_counted_by_the_hour_well_or_not() -> None:
    make_result("succeeded", timedelta(minutes=0))
    make_result("succeeded", HOUR)
    make_result("failed", HOUR)
    make_result("outcome_unknown", HOUR)
    make_result("skipped", HOUR)
    make_result("succeeded", timedelta(hours=30))

    hours = last_hours(NOW, 3)

    assert [hour.ended for hour in hours] == [Ended(), Ended(1, 2), Ended(1, 0)]


def test_an_hour_that_is_over_is_counted_once(django_assert_num_queries: object) -> None:
    make_result("succeeded", 5 * HOUR)
    last_hours(NOW)
    Result.objects.all().delete()
    make_result("failed", timedelta(0))

    hours = last_hours(NOW)

    assert sum((hour.ended for hour in hours), Ended()) == Ended(1, 1)


def reasons(now: object = NOW) -> dict[str, str]:
    return {trouble.schedule.slug: trouble.reason for trouble in overview(NOW).troubles}


def test_schedules_that_need_a_look_are_named_with_their_reason() -> None:
    stuck, late, failing = make_schedule("stuck"), make_schedule("late"), make_schedule("failing")
    make_schedule("well")
    Evaluation.objects.create(schedule=stuck, since=NOW, reason="no target")
    Schedule.objects.filter(pk=late.pk).update(next_fire_at=NOW - HOUR)
    make_result("failed", HOUR, failing)

    assert reasons() == {"stuck": "no target", "late": "late", "failing": "failing"}


def test_a_disabled_schedule_needs_no_look() -> None:
    schedule = make_schedule("off", enabled=False)
    Evaluation.objects.create(schedule=schedule, since=NOW, reason="no target")

    assert reasons() == {}


@pytest.mark.parametrize(
    ("age", "is_ticking"), [(timedelta(minutes=2), True), (timedelta(minutes=3), False)]
)
def test_nobody_ticks_after_three_minutes_of_silence(age: timedelta, is_ticking: bool) -> None:
    TickMark.objects.update_or_create(pk=1, defaults={"last_tick_at": NOW - age})

    assert overview(NOW).is_ticking is is_ticking


def problems(client: Client) -> list[str]:
    return [problem.text for problem in client.get(reverse("admin:index")).context["problems"]]


def test_what_needs_a_look_is_said_with_a_link(root: Client) -> None:
    make_agent(state="pending")
    make_execution(make_job("patch"), state="awaiting_approval")
    make_schedule("nightly")
    Freeze.objects.update(is_set=True, reason="holiday")

    assert problems(root) == [
        "the fleet is frozen",
        "no runner ticks (last: never)",
        "the queue is down",
        "1 run awaits approval",
        "1 PC to be accepted",
    ]
    assert root.get(reverse("admin:index")).context["verdict"] == "bad"


def test_the_living_part_is_the_page_without_its_frame(root: Client) -> None:
    make_schedule("nightly")
    Evaluation.objects.create(
        schedule=Schedule.objects.get(), since=timezone.now(), reason="no target"
    )

    part = root.get(reverse("admin:dashboard")).content.decode()

    assert "nightly" in part
    assert "<html" not in part


def test_the_page_names_its_living_part(root: Client) -> None:
    assert f'data-live="{reverse("admin:dashboard")}"' in root.get("/admin/").content.decode()


def test_who_may_not_see_schedules_sees_no_figures(visit: Visit) -> None:
    make_agent("secret-pc")
    client = visit("nobody")

    page = client.get(reverse("admin:index"))

    assert page.status_code == 200
    assert page.context["overview"] is None
    assert client.get(reverse("admin:dashboard")).status_code == 403


def test_the_navigation_shows_a_person_what_they_may_see(visit: Visit) -> None:
    def names(role: str) -> set[str]:
        sections = visit(role).get(reverse("admin:index")).context["sections"]
        return {entry["name"] for section in sections for entry in section["entries"]}

    assert names("nobody") == set()
    assert {"Schedules", "Jobs", "Agents", "Freeze"} <= names("viewer")
    assert "Enrolment tokens" not in names("operator")
    assert {"Enrolment tokens", "API tokens"} <= names("fleet-admin")
