"""Who may do what over HTTP: one table, every cell."""

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from scheduler.models import AuditEntry, Task
from scheduler.public import request
from scheduler.registry import REGISTRY
from tests.scheduler.api.callers import API, Caller, make_staff, ok
from tests.scheduler.make import make_kind

pytestmark = pytest.mark.django_db

VIEW, CHANGE, ADD = "scheduler.view_task", "scheduler.change_task", "scheduler.add_task"
DOORS: dict[tuple[str, str], tuple[str, ...]] = {
    ("get", "tasks/"): (VIEW,),
    ("post", "tasks/"): (VIEW, ADD),
    ("get", "tasks/{id}/"): (VIEW,),
    ("patch", "tasks/{id}/"): (VIEW, CHANGE),
    ("post", "tasks/{id}/cancel/"): (VIEW, CHANGE),
    ("post", "tasks/{id}/run-now/"): (VIEW, CHANGE),
    ("post", "tasks/{id}/retry/"): (VIEW, CHANGE),
    ("post", "tasks/{id}/release/"): (VIEW, CHANGE),
    ("post", "tasks/{id}/reset-cron/"): (VIEW, CHANGE),
    ("get", "tasks/{id}/runs/"): (VIEW, "scheduler.view_run"),
    ("get", "queue/"): (VIEW, "scheduler.view_runner"),
    ("post", "queue/pause/"): ("scheduler.change_queue",),
    ("post", "queue/resume/"): ("scheduler.change_queue",),
    ("get", "audit/"): ("scheduler.view_auditentry",),
}
EVERY_RIGHT = sorted({right for rights in DOORS.values() for right in rights})
CELLS = [(door, missing) for door, rights in DOORS.items() for missing in rights]
# What gets past the rights and is then refused or done.
PASSED = {200, 201, 204, 400, 409}


@pytest.fixture
def task_id() -> int:
    REGISTRY.add(make_kind("demo"))
    return request("demo", key="a", after=3600)


def knock(caller: Caller, door: tuple[str, str], task_id: int) -> int:
    method, path = door
    body: dict[str, str] | None = None if method == "get" else {}
    status: int = caller.call(method, path.format(id=task_id), body).status_code
    return status


@pytest.mark.parametrize("door", DOORS, ids=" ".join)
def test_the_named_rights_open_a_door(door: tuple[str, str], task_id: int) -> None:
    assert knock(Caller(make_staff(*DOORS[door])), door, task_id) in PASSED


@pytest.mark.parametrize(("door", "missing"), CELLS)
def test_every_other_right_together_does_not(
    door: tuple[str, str], missing: str, task_id: int
) -> None:
    before = Task.objects.values().get()
    held = [right for right in EVERY_RIGHT if right != missing]
    assert knock(Caller(make_staff(*held)), door, task_id) == 403
    assert (Task.objects.values().get(), AuditEntry.objects.count()) == (before, 0)


@pytest.mark.parametrize("door", DOORS, ids=" ".join)
@pytest.mark.parametrize("fields", [{"is_staff": False}, {"is_active": False}, None], ids=str)
def test_strangers_are_kept_out(
    door: tuple[str, str], fields: dict[str, bool] | None, task_id: int
) -> None:
    caller = Caller()
    if fields is not None:
        user = User.objects.create_user("bob", is_superuser=True, is_staff=True)
        caller = Caller(user)
        User.objects.filter(pk=user.pk).update(**fields)
    assert knock(caller, door, task_id) in {401, 403}
    assert AuditEntry.objects.count() == 0


@pytest.mark.parametrize("path", ["tasks/", "tasks/{id}/", "queue/", "audit/"])
@pytest.mark.parametrize("method", ["put", "delete", "trace", "options"])
def test_other_verbs_are_refused(path: str, method: str, task_id: int) -> None:
    caller = Caller(make_staff(*EVERY_RIGHT))
    assert caller.call(method, path.format(id=task_id)).status_code in {403, 405}
    assert Task.objects.count() == 1


def test_a_session_without_the_csrf_token_writes_nothing(task_id: int) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(make_staff(*EVERY_RIGHT))
    answer = client.post(f"{API}tasks/{task_id}/cancel/", {}, "application/json")
    assert answer.status_code == 403
    assert Task.objects.get().state == "pending"


@pytest.mark.parametrize("path", ["tasks/", "audit/", "tasks/{id}/runs/"])
def test_a_list_asks_the_same_few_questions_whatever_its_length(path: str, task_id: int) -> None:
    caller = Caller(make_staff(*EVERY_RIGHT))
    with CaptureQueriesContext(connection) as few:
        ok(caller.get(path.format(id=task_id)))
    for number in range(20):
        request("demo", key=f"{number}", depends_on=[task_id])
        caller.post(f"tasks/{task_id}/run-now/")
    with CaptureQueriesContext(connection) as many:
        ok(caller.get(path.format(id=task_id)))
    # Session, user, two for the rights, the page.
    assert (len(few), len(many)) == (5, 5)


def test_a_task_is_read_in_a_fixed_number_of_queries(task_id: int) -> None:
    caller = Caller(make_staff(*EVERY_RIGHT))
    for number in range(20):
        request("demo", key=f"{number}", depends_on=[task_id])
    with CaptureQueriesContext(connection) as asked:
        assert len(ok(caller.get(f"tasks/{task_id}/"))["needed_by"]) == 20
    assert len(asked) == 7


def test_a_page_never_has_more_than_200_rows(task_id: int) -> None:
    caller = Caller(make_staff(*EVERY_RIGHT))
    for number in range(205):
        request("demo", key=f"{number}")
    assert len(ok(caller.get("tasks/?page_size=100000"))["results"]) == 200
