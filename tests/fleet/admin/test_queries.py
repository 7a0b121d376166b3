"""The cost of a page does not grow with what is in the tables, and no list reads large columns."""

import re
from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from fleet.models import Agent, Evaluation, Output, Result, Wave, new_id
from fleet.rules.command_states import CommandState
from fleet.templatetags.kanade import MOST_COUNTED
from scheduler.admin.paging import CappedPaginator
from tests.fleet.admin.everything import Rows, address_of, fleet_pages, make_everything
from tests.fleet.make import (
    NOW,
    make_agent,
    make_command,
    make_execution,
    make_group,
    make_job,
    make_schedule,
    make_schedule_agent,
    revise,
)

pytestmark = pytest.mark.django_db

MANY = 12
SHOWN = ("changelist", "change", "overview", "preview", "live", "yaml")
PAGES = [
    (name, route)
    for name, route in fleet_pages()
    if name.rsplit("_", 1)[1] in SHOWN and name != "fleet_freeze_change"
]


def many_more(rows: Rows) -> None:
    """A dozen more of everything, around the rows that pages are about."""
    for number in range(MANY):
        agent = make_agent()
        make_group(f"more-{number}", agent, rows.agent)
        job = make_job(f"more-{number}")
        revise(rows.job, version=f"v{number}", current=False)
        schedule = make_schedule(f"more-{number}", job=rows.job)
        Evaluation.objects.create(schedule=schedule, since=NOW, reason="all done")
        make_schedule_agent(rows.schedule, agent, failures=1, last_failed_at=NOW)
        make_schedule_agent(schedule, rows.agent, failures=1, last_failed_at=NOW)
        execution = make_execution(job)
        make_execution(rows.job, schedule=rows.schedule)
        Wave.objects.create(
            execution=rows.execution, number=number + 1, due_at=NOW, deadline_at=NOW
        )
        make_command(agent, execution=rows.execution, state=CommandState.FAILED)
        make_command(rows.agent, execution=execution)
        make_result(agent, rows)


def make_result(agent: Agent, rows: Rows) -> None:
    key = new_id()
    Result.objects.create(
        command_id=key,
        agent_id=agent.pk,
        job_id=rows.job.pk,
        schedule_id=rows.schedule.pk,
        revision_id=rows.revision.pk,
        job_version="1",
        outcome="failed",
        received_at=NOW,
    )
    Output.objects.create(
        command_id=key, stream="stdout", head=b"x", tail=b"", total=1, received_at=NOW
    )


def queries(visit: Callable[[], object]) -> list[str]:
    cache.clear()
    with CaptureQueriesContext(connection) as captured:
        visit()
    return [query["sql"] for query in captured.captured_queries]


def costs(client: Client, addresses: dict[str, str]) -> dict[str, int]:
    """How many queries each page takes."""
    return {name: len(queries(partial(client.get, at))) for name, at in addresses.items()}


def test_no_page_asks_more_when_there_is_more(root: Client) -> None:
    rows = make_everything("plain words", User.objects.get(username="root"))
    addresses = {name: address_of(name, route, rows) for name, route in PAGES}
    addresses |= {name: reverse(f"admin:{name}") for name in ("index", "dashboard")}
    few = costs(root, addresses)

    many_more(rows)

    many = costs(root, addresses)
    grown = {name: (few[name], many[name]) for name in addresses if many[name] > few[name]}
    assert grown == {}


def test_no_list_asks_more_than_a_handful(root: Client) -> None:
    rows = make_everything("plain words", User.objects.get(username="root"))
    many_more(rows)
    lists = [name for name, _ in PAGES if name.endswith("changelist")]

    addresses = {name: reverse(f"admin:{name}") for name in lists}
    counts = costs(root, addresses)

    assert {name: count for name, count in counts.items() if count > 12} == {}


LARGE = ('"head"', '"tail"', '"data"', '"manifest"', '"note"')


@pytest.mark.parametrize("model", ["job", "execution", "result", "command", "agent", "jobrevision"])
def test_no_list_reads_a_large_column(model: str, root: Client) -> None:
    rows = make_everything("plain words", User.objects.get(username="root"))
    many_more(rows)

    asked = queries(lambda: root.get(reverse(f"admin:fleet_{model}_changelist")))

    # A key of a document is not the document: what SQLite's functions take out is small.
    plain = [re.sub(r"JSON_\w+\([^()]*\)", "", sql).split(" FROM ")[0] + "," for sql in asked]
    read = [column for sql in plain for column in LARGE if f"{column}," in sql]
    assert read == []


def test_a_list_counts_so_far_and_no_further(root: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.admin.paging.MOST_COUNTED", 3)
    for _ in range(5):
        make_agent()

    asked = queries(lambda: CappedPaginator(Agent.objects.all(), 2).count)

    assert CappedPaginator(Agent.objects.all(), 2).count == 3
    assert len(asked) == 1
    assert "LIMIT 3" in asked[0]


def test_a_list_beyond_the_cap_says_so(root: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CappedPaginator, "count", MOST_COUNTED)
    make_agent()

    page = root.get(reverse("admin:fleet_agent_changelist")).content.decode()

    assert "more than 10000 agents; narrow the list" in page


def test_the_whole_dashboard_costs_no_more_on_a_second_look(root: Client) -> None:
    rows = make_everything("plain words", User.objects.get(username="root"))
    Result.objects.update(received_at=NOW - timedelta(hours=5))
    first = len(queries(lambda: root.get(reverse("admin:dashboard"))))

    with CaptureQueriesContext(connection) as second:
        root.get(reverse("admin:dashboard"))

    assert rows.job is not None
    assert len(second) <= first
