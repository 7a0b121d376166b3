"""The list of schedules: what each says, what was decided, and who is covered."""

import pytest
from django.test import Client
from django.urls import reverse

from fleet.models import Evaluation, Job
from tests.fleet.admin.reading import Page
from tests.fleet.make import NOW, make_agent, make_job, make_schedule, make_schedule_agent

pytestmark = pytest.mark.django_db


def cells(client: Client, column: str) -> list[str]:
    page = Page(client.get(reverse("admin:fleet_schedule_changelist")).content.decode())
    found = [*page.all("td", class_=f"field-{column}"), *page.all("th", class_=f"field-{column}")]
    return [" ".join(cell.text.split()) for cell in found]


def test_a_schedule_says_in_words_when_and_whom_it_means(root: Client) -> None:
    make_schedule("nightly", when={"calendar": {"at": "09:00"}}, target={"groups": ["office"]})

    (says,) = cells(root, "says")

    assert "09:00" in says
    assert says.endswith("group office")


def test_the_last_decision_is_shown_with_its_reason(root: Client) -> None:
    schedule = make_schedule("nightly")
    Evaluation.objects.create(schedule=schedule, since=NOW, reason="outside window")

    assert cells(root, "last_look")[0].startswith("outside window")


def test_notes_stand_under_the_id(root: Client) -> None:
    make_schedule("nightly", job=make_job("patch"), target={})
    Job.objects.update(revoked_at=NOW)

    (ident,) = cells(root, "ident")

    assert ident.startswith("nightlyruns patch")
    assert "has no target" in ident
    assert "its job is revoked" in ident


def test_small_targets_are_added_up_and_large_ones_are_not(
    root: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fleet.admin.schedule_page.MOST_COVERED_IN_A_LIST", 2)
    small, large = make_schedule("a-small"), make_schedule("b-large")
    agents = [make_agent() for _ in range(3)]
    for agent in agents:
        make_schedule_agent(large, agent)
    for agent in agents[:2]:
        make_schedule_agent(small, agent)

    assert cells(root, "coverage") == ["PCs: 2 not yet 0 of 2", "\N{EN DASH}"]
