"""Lists: narrowed by what is allowed and nothing else, found by whole names."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from scheduler.models import Run, Task
from scheduler.public import Actor, pause_queue, record_act, request, resume_queue
from tests.scheduler.admin.rows import NOW, make_rows, page
from tests.scheduler.make import make_runner

pytestmark = pytest.mark.django_db


def listed(client: Client, model: str, query: str = "") -> list[object]:
    answer = client.get(page(model, "changelist") + query)
    assert answer.status_code == 200, query
    return [row.pk for row in answer.context["cl"].result_list]


def test_tasks_are_narrowed_by_what_they_do(root: Client) -> None:
    due = request("demo")
    waiting = request("demo", depends_on=[due])
    later = request("demo", after=3600)
    found = {
        state: listed(root, "task", f"?state={state}")
        for state in ("due", "waiting", "scheduled", "running", "pending")
    }
    assert found == {
        "due": [due],
        "waiting": [waiting],
        "scheduled": [later],
        "running": [],
        "pending": [later, waiting, due],
    }


def test_a_task_is_found_by_key_kind_and_number(root: Client) -> None:
    first = request("demo", key="tenant-7")
    second = request("demo", key="tenant-70")
    assert listed(root, "task", "?q=tenant-7") == [first]
    assert listed(root, "task", f"?q={second}") == [second]
    assert listed(root, "task", "?q=demo") == [second, first]
    assert listed(root, "task", "?q=tenant") == []
    assert listed(root, "task", "?q=" + "9" * 40) == []


def test_a_list_says_how_tasks_stand_in_words(root: Client) -> None:
    first = request("demo", key="a")
    request("demo", key="b", depends_on=[first])
    request("demo", key="c", cron="20 4 * * *")
    text = root.get(page("task", "changelist")).content.decode()
    assert "waits for 1 task" in text
    assert "20 4 * * *" in text


@pytest.mark.parametrize(
    "query",
    [
        "last_error__startswith=a",
        "input__icontains=a",
        "runner__boot_id=x",
        "history__trace__contains=x",
        "lease_token=1",
        "key__regex=a",
    ],
)
def test_a_list_is_not_narrowed_by_other_columns(query: str, root: Client) -> None:
    make_rows()
    answer = root.get(f"{page('task', 'changelist')}?{query}")
    assert answer.status_code in {302, 400}


@pytest.mark.parametrize(
    "query", ["?state=asleep", "?o=1.2", "?p=9999", "?all=1", "?kind=nobody%20knows"]
)
def test_odd_queries_are_no_error_of_ours(query: str, root: Client) -> None:
    make_rows()
    assert root.get(page("task", "changelist") + query).status_code in {200, 302}


@pytest.mark.parametrize(
    ("model", "name"),
    [("task", "kind"), ("task", "q"), ("run", "task_id"), ("auditentry", "object_id")],
)
def test_a_nul_in_a_query_is_refused(model: str, name: str, root: Client) -> None:
    assert root.get(f"{page(model, 'changelist')}?{name}=a%00b").status_code == 400


def test_the_runs_of_a_task_are_listed_newest_first(root: Client) -> None:
    rows = make_rows()
    newer = Run.objects.create(
        task_id=rows.task.pk, kind="demo", lease_token=2, attempt=1, outcome="succeeded",
        ended_at=NOW,
    )  # fmt: skip
    other = Run.objects.create(
        task_id=rows.ended.pk, kind="demo", lease_token=9, attempt=1, outcome="succeeded",
        ended_at=NOW,
    )  # fmt: skip
    assert listed(root, "run", f"?task_id={rows.task.pk}") == [newer.pk, rows.run.pk]
    assert listed(root, "run", "?outcome=succeeded") == [other.pk, newer.pk]


def test_audit_entries_are_narrowed_by_what_they_are_about(root: Client) -> None:
    record_act(Actor("user", "ann"), "cancel", object_kind="task", object_id=7, now=NOW)
    record_act(Actor("token", "bob"), "save", object_kind="job", object_id="7", now=NOW)
    assert len(listed(root, "auditentry", "?object_kind=task&object_id=7")) == 1
    assert len(listed(root, "auditentry", "?actor_kind=token")) == 1
    assert len(listed(root, "auditentry", "?q=ann")) == 1
    assert len(listed(root, "auditentry", "?q=7")) == 2
    assert root.get(page("auditentry", "changelist") + "?reason__contains=x").status_code == 400


def test_what_changed_comes_first_in_an_entry(root: Client) -> None:
    rows = make_rows()
    changes = root.get(page("auditentry", "change", rows.auditentry.pk)).context["changes"]
    assert [change.is_changed for change in changes] == sorted(
        (change.is_changed for change in changes), reverse=True
    )


def test_a_runner_is_alive_silent_or_stopped(root: Client) -> None:
    make_runner("one")
    make_runner("two", last_tick_at=timezone.now() - timedelta(minutes=5))
    make_runner("three", stopped_at=timezone.now())
    text = root.get(page("runner", "changelist")).content.decode()
    for word in ("alive", "silent for 5 min", "stopped"):
        assert word in text


def test_a_queue_without_a_row_is_paused_by_its_name(root: Client) -> None:
    answer = root.post(page("queue", "add"), {"queue": "slow", "reason": "disk full"})
    assert answer.status_code == 302
    assert "paused" in root.get(page("queue", "changelist")).content.decode()
    resume_queue("slow")
    assert "taken from" in root.get(page("queue", "changelist")).content.decode()


@pytest.mark.parametrize("name", ["", "q" * 101, "a\0b"])
def test_a_queue_of_a_bad_name_is_not_paused(name: str, root: Client) -> None:
    answer = root.post(page("queue", "add"), {"queue": name})
    assert answer.status_code == 200
    assert answer.context["form"].errors.keys() == {"queue"}
    assert listed(root, "queue") == []


def test_a_limited_queue_says_so(root: Client) -> None:
    pause_queue("slow")
    (key,) = listed(root, "queue")
    root.post(page("queue", "limit", key), {"most_running": "3"})
    assert root.get(page("queue", "change", key)).context["limit"] == "3"
    root.post(page("queue", "limit", key), {"most_running": ""})
    assert root.get(page("queue", "change", key)).context["limit"] == "any number"


def test_a_list_shows_no_more_than_a_page(root: Client) -> None:
    for number in range(60):
        request("demo", key=str(number))
    assert len(listed(root, "task")) == 50
    assert len(listed(root, "task", "?p=2")) == 10
    assert Task.objects.count() == 60
