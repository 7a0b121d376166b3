"""`manage.py health`: what it prints and how it exits."""

import json
from io import StringIO
from typing import Any
from unittest.mock import patch

import django.db
import pytest
from django.core.management import call_command

from scheduler.public import pause_queue, request
from scheduler.registry import REGISTRY
from tests.clock import ManualClock
from tests.scheduler.make import make_kind, make_runner, only_kinds

COMMAND = "scheduler.management.commands.health"


def ask() -> tuple[int, dict[str, Any]]:
    """Run the command; return its exit status and what it printed."""
    out = StringIO()
    with pytest.raises(SystemExit) as caught:
        call_command("health", stdout=out)
    assert isinstance(caught.value.code, int)
    return caught.value.code, json.loads(out.getvalue())


@pytest.mark.django_db
def test_it_exits_with_0_when_all_is_well() -> None:
    make_runner()
    status, report = ask()
    assert (status, report["verdict"], report["reasons"]) == (0, "ok", [])
    assert report["runners"][0]["is_alive"] is True


@pytest.mark.django_db
def test_it_exits_with_1_when_somebody_should_look(clock: ManualClock) -> None:
    make_runner()
    REGISTRY.add(make_kind("demo"))
    request("demo", now=clock.now)
    with only_kinds():
        status, report = ask()
    assert (status, report["reasons"]) == (1, ["no handler for demo"])


@pytest.mark.django_db
def test_it_exits_with_2_when_nobody_takes_tasks() -> None:
    status, report = ask()
    assert (status, report["verdict"]) == (2, "down")


@pytest.mark.django_db
def test_it_prints_the_six_fields_of_the_original(clock: ManualClock) -> None:
    make_runner()
    pause_queue("slow", now=clock.now)
    _, report = ask()
    six = ("waiting", "scheduled", "running", "dependents", "stuck_tasks")
    assert [report[name] for name in six] == [0, 0, 0, 0, []]
    assert report["tasks_with_missing_deps"] == []
    assert report["paused_queues"] == ["slow"]


def test_a_database_that_does_not_answer_is_down_and_still_json() -> None:
    with patch(f"{COMMAND}.queue_health", autospec=True) as look:
        look.side_effect = django.db.OperationalError("connection refused")
        status, report = ask()
    assert status == 2
    assert report == {
        "verdict": "down",
        "reasons": ["the database does not answer: connection refused"],
    }
