"""The queue's health and the pausing of queues over HTTP."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.models import AuditEntry, Queue
from scheduler.public import request
from scheduler.registry import REGISTRY
from tests.scheduler.api.callers import Caller, errors, make_staff, ok
from tests.scheduler.make import make_kind, make_runner

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff() -> Caller:
    rights = ("view_task", "view_runner", "change_queue")
    return Caller(make_staff(*(f"scheduler.{right}" for right in rights)))


def test_the_six_fields_of_the_original_stand_beside_ours(staff: Caller) -> None:
    REGISTRY.add(make_kind("demo"))
    make_runner()
    first = request("demo")
    request("demo", depends_on=[first])
    body = ok(staff.get("queue/"))
    six = {
        "waiting": 1,
        "scheduled": 1,
        "running": 0,
        "dependents": 1,
        "stuck_tasks": [],
        "tasks_with_missing_deps": [],
    }
    assert {name: body[name] for name in six} == six
    assert body["by_kind"] == {"demo": {"waiting": 1, "due": 1}}
    assert (body["verdict"], body["reasons"]) == ("ok", [])
    assert body["runners"][0]["is_alive"] is True


def test_a_queue_is_paused_and_resumed_by_name(staff: Caller) -> None:
    answer = staff.post("queue/pause/", {"queue": "slow", "reason": "maintenance"})
    assert answer.status_code == 204
    assert Queue.objects.get(name="slow").paused is True
    assert ok(staff.get("queue/"))["paused_queues"] == ["slow"]
    assert staff.post("queue/resume/", {"queue": "slow"}).status_code == 204
    assert Queue.objects.get(name="slow").paused is False
    entries = AuditEntry.objects.order_by("pk").values_list("action", "object_id", "reason")
    assert list(entries) == [("pause", "slow", "maintenance"), ("resume", "slow", "")]


@pytest.mark.parametrize("name", ["", "q" * 101, "a\0b", None, 5])
def test_a_bad_name_is_refused_and_nothing_is_paused(staff: Caller, name: object) -> None:
    answer = staff.post("queue/pause/", {"queue": name})
    assert (answer.status_code, list(errors(answer))) == (400, ["queue"])
    assert (Queue.objects.count(), AuditEntry.objects.count()) == (0, 0)


def test_the_report_costs_the_same_for_any_queue(staff: Caller) -> None:
    REGISTRY.add(make_kind("demo"))
    make_runner()
    first = request("demo")
    request("demo", depends_on=[first])
    staff.get("queue/")

    with CaptureQueriesContext(connection) as few:
        staff.get("queue/")
    for number in range(30):
        request("demo", key=str(number), depends_on=[first])
        make_runner(f"runner {number}")
    with CaptureQueriesContext(connection) as many:
        staff.get("queue/")

    assert len(many) == len(few) <= 16
