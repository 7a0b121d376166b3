"""Tasks over HTTP: read, requested, changed, acted on."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from scheduler.models import AuditEntry, Run, Task
from scheduler.public import Retry, request
from scheduler.registry import REGISTRY
from scheduler.rules.states import TaskState
from tests.clock import ManualClock
from tests.scheduler.api.callers import Caller, errors, make_staff, ok
from tests.scheduler.make import Worker, make_kind, reload

pytestmark = pytest.mark.django_db

RIGHTS = ("view_task", "add_task", "change_task", "view_run")


@pytest.fixture
def staff() -> Caller:
    REGISTRY.add(make_kind("demo"))
    return Caller(make_staff(*(f"scheduler.{right}" for right in RIGHTS)))


@pytest.fixture
def clock() -> ManualClock:
    """The site reads the real clock, so the engine's steps do as well."""
    return ManualClock(timezone.now())


def nightly(**fields: Any) -> int:
    """A recurring task."""
    return request("demo", **{"key": "nightly", "cron": "20 4 * * *"} | fields)


def quarantined(clock: ManualClock) -> int:
    task_id = request("demo", now=clock.now)
    Task.objects.filter(pk=task_id).update(state=TaskState.QUARANTINED, ready=False)
    return task_id


def test_a_task_is_requested(staff: Caller) -> None:
    body = ok(
        staff.post("tasks/", {"kind": "demo", "key": "a", "input": {"x": 1}, "after": "5m"}), 201
    )
    task = reload(body["id"])
    assert (task.kind, task.key, task.input) == ("demo", "a", {"x": 1})
    assert task.due_at == task.created_at + timedelta(minutes=5)
    assert body["words"] == "due in 5 min"


def test_who_requested_a_task_is_written_down(staff: Caller) -> None:
    task_id = ok(staff.post("tasks/", {"kind": "demo", "key": "a"}), 201)["id"]
    entry = AuditEntry.objects.get()
    assert (entry.actor_kind, entry.actor_name, entry.action) == ("user", "ann", "request")
    assert (entry.object_kind, entry.object_id) == ("task", str(task_id))
    assert entry.after == {"kind": "demo", "key": "a"}


def test_a_request_for_a_live_key_updates_it(staff: Caller) -> None:
    task_id = request("demo", key="a", input=1)
    body = ok(staff.post("tasks/", {"kind": "demo", "key": "a", "input": 2}), 200)
    assert (body["id"], body["input"]) == (task_id, 2)
    assert Task.objects.count() == 1


def test_every_argument_of_a_request_is_taken(staff: Caller) -> None:
    first = request("demo")
    asked = {
        "kind": "demo",
        "key": "",
        "cron": "20 4 * * *",
        "tz": "Europe/Budapest",
        "day_rule": "and",
        "retry": {"times": 3, "min": 1},
        "depends_on": [first],
        "require_success": True,
        "run_on_startup": True,
        "misfire": "skip",
        "priority": -7,
        "queue": "slow",
        "coalesce": True,
    }
    body = ok(staff.post("tasks/", asked), 201)
    assert body["retry"] == {"times": 3, "min": 1, "max": 3600}
    assert (body["depends_on"], body["words"]) == ([first], "waits for 1 task")
    for name in ("key", "cron", "tz", "day_rule", "misfire", "priority", "queue"):
        assert body[name] == asked[name]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"cron": "0 0 31 2 *", "key": "k"}, "cron"),
        ({"cron": "61 * * * *", "key": "k"}, "cron"),
        ({"cron": "R * * * *", "key": "k"}, "cron"),
        ({"cron": "5-1 * * * *", "key": "k"}, "cron"),
        ({"cron": "0 20 4 * * *", "key": "k"}, "cron"),
        ({"cron": "", "key": "k"}, "cron"),
        ({"cron": "* * * * *\0", "key": "k"}, "cron"),
        ({"cron": "* * * * *" * 100, "key": "k"}, "cron"),
        ({"cron": 5, "key": "k"}, "cron"),
        ({"cron": "* * * * *"}, "key"),
        ({"cron": "* * * * *", "key": "k", "tz": "Mars/Olympus"}, "tz"),
        ({"cron": "* * * * *", "key": "k", "tz": "../../etc/passwd"}, "tz"),
        ({"kind": "nobody knows it"}, "kind"),
        ({"kind": ""}, "kind"),
        ({"kind": "de\0mo"}, "kind"),
        ({"key": "\ud800"}, "key"),
        ({"key": "bell\x07"}, "key"),
        ({"key": 7}, "key"),
        ({"key": "k" * 501}, "key"),
        ({"input": {"a": "\0"}}, "input.a"),
        ({"input": {"\udfff": 1}}, "input"),
        ({"at": "2026-12-01T09:00:00"}, "at"),
        ({"at": "9999-12-31T23:59:59Z"}, "at"),
        ({"at": "soon"}, "at"),
        ({"at": 5}, "at"),
        ({"after": "5 fortnights"}, "after"),
        ({"after": 1e300}, "after"),
        ({"after": "5m", "at": "2026-12-01T09:00:00Z"}, "after"),
        ({"retry": {"times": -1}}, "retry.times"),
        ({"retry": {"times": 70000}}, "retry.times"),  # X69
        ({"retry": {"times": "3"}}, "retry.times"),
        ({"retry": {"tmes": 3}}, "retry.tmes"),
        ({"depends_on": [0]}, "depends_on.0"),
        ({"depends_on": [999999]}, "depends_on"),
        ({"depends_on": ["1"]}, "depends_on.0"),
        ({"priority": 101}, "priority"),
        ({"priority": True}, "priority"),
        ({"queue": ""}, "queue"),
        ({"misfire": "never"}, "misfire"),
        ({"day_rule": "xor"}, "day_rule"),
        ({"run_on_startup": True}, "run_on_startup"),
        ({"coalesce": "yes"}, "coalesce"),
        ({"state": "finished"}, "state"),
        ({"lease_token": 1}, "lease_token"),
    ],
)
def test_a_bad_request_is_refused_at_its_field_and_stores_nothing(
    staff: Caller, changes: dict[str, object], field: str
) -> None:
    answer = staff.post("tasks/", {"kind": "demo"} | changes)
    assert (answer.status_code, list(errors(answer))) == (400, [field])
    assert (Task.objects.count(), AuditEntry.objects.count()) == (0, 0)


def test_a_task_tells_when_it_recurs(staff: Caller) -> None:
    task_id = nightly(tz="Europe/Budapest")
    seen = ok(staff.get(f"tasks/{task_id}/"))["recurrence"]
    assert (seen["per_day"], seen["problem"], len(seen["next"])) == (1, "", 5)
    assert "04:20" in seen["words"]
    assert "T04:20:00+0" in seen["next"][0]["local"]


def test_staff_change_a_cron_and_registration_does_not_undo_it(staff: Caller) -> None:
    task_id = nightly()
    body = ok(staff.patch(f"tasks/{task_id}/", {"cron": "0 5 * * *", "reason": "backups"}))
    assert (body["cron"], body["registered_cron"]) == ("0 5 * * *", "20 4 * * *")
    assert body["due"].endswith("T05:00:00Z")
    request("demo", key="nightly", cron="30 2 * * *")  # the next release of the program
    body = ok(staff.get(f"tasks/{task_id}/"))
    assert (body["cron"], body["registered_cron"]) == ("0 5 * * *", "30 2 * * *")
    assert body["due"].endswith("T05:00:00Z")
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.reason, entry.actor_name) == ("set cron", "backups", "ann")
    assert entry.before is not None
    assert entry.after is not None
    assert (entry.before["cron_override"], entry.after["cron_override"]) == (None, "0 5 * * *")


@pytest.mark.parametrize("door", ["null", "reset-cron"])
def test_the_cron_of_the_code_comes_back(staff: Caller, door: str) -> None:
    task_id = nightly()
    ok(staff.patch(f"tasks/{task_id}/", {"cron": "0 5 * * *"}))
    if door == "null":
        body = ok(staff.patch(f"tasks/{task_id}/", {"cron": None}))
    else:
        body = ok(staff.post(f"tasks/{task_id}/reset-cron/"))
    assert (body["cron"], body["cron_override"]) == ("20 4 * * *", None)


def test_retry_and_due_are_changed_together(staff: Caller) -> None:
    task_id = request("demo")
    changes = {"retry": {"times": 2, "min": 5, "max": 60}, "due": "2030-01-02T03:04:05+01:00"}
    body = ok(staff.patch(f"tasks/{task_id}/", changes))
    assert body["due"] == "2030-01-02T02:04:05Z"
    assert reload(task_id).retry == Retry(2, 5, 60)
    assert AuditEntry.objects.count() == 2


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"cron": "0 0 31 2 *"}, "cron"),
        ({"cron": "61 * * * *"}, "cron"),
        ({"cron": "R * * * *"}, "cron"),
        ({"cron": "5-1 * * * *"}, "cron"),
        ({"cron": "0 20 4 * * *"}, "cron"),
        ({"cron": "0 5 * * *\x00"}, "cron"),
        ({"cron": "0 5 * * *", "due": "yesterday"}, "due"),
        ({"due": None}, "due"),
        ({"retry": {"times": 1, "max": -1}}, "retry.max"),
        ({"state": "finished"}, "state"),
        ({"kind": "other"}, "kind"),
        ({"crn": "0 5 * * *"}, "crn"),
    ],
)
def test_a_bad_change_is_refused_at_its_field_and_changes_nothing(
    staff: Caller, changes: dict[str, object], field: str
) -> None:
    task_id = nightly()
    before = Task.objects.filter(pk=task_id).values().get()
    answer = staff.patch(f"tasks/{task_id}/", changes)
    assert (answer.status_code, list(errors(answer))) == (400, [field])
    assert Task.objects.filter(pk=task_id).values().get() == before
    assert AuditEntry.objects.count() == 0


def test_a_change_of_nothing_is_refused(staff: Caller) -> None:
    task_id = nightly()
    assert staff.patch(f"tasks/{task_id}/", {"reason": "why not"}).status_code == 400


def test_the_good_half_of_a_refused_change_is_not_kept(staff: Caller) -> None:
    task_id = request("demo", key="once")
    answer = staff.patch(f"tasks/{task_id}/", {"retry": {"times": 1}, "cron": "* * * * *"})
    assert answer.status_code == 409
    assert reload(task_id).retry is None
    assert AuditEntry.objects.count() == 0


@pytest.mark.parametrize("verb", ["cancel", "run-now"])
def test_a_live_task_is_acted_on(staff: Caller, verb: str) -> None:
    task_id = request("demo", after=3600)
    body = ok(staff.post(f"tasks/{task_id}/{verb}/", {"reason": "because"}))
    assert body["phase"] == {"cancel": "cancelled", "run-now": "due"}[verb]
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.reason) == (verb.replace("-", " "), "because")


def test_a_task_that_is_over_is_started_again(staff: Caller, clock: ManualClock) -> None:
    worker = Worker(clock)
    task_id = request("demo", now=clock.now)
    worker.fail(worker.claim_one())
    assert ok(staff.post(f"tasks/{task_id}/retry/"))["state"] == "pending"


def test_a_quarantined_task_is_released(staff: Caller, clock: ManualClock) -> None:
    task_id = quarantined(clock)
    assert ok(staff.post(f"tasks/{task_id}/release/"))["state"] == "pending"


@pytest.mark.parametrize("verb", ["retry", "release", "reset-cron"])
def test_what_a_state_does_not_allow_conflicts_and_changes_nothing(
    staff: Caller, verb: str
) -> None:
    task_id = request("demo", after=3600)
    before = Task.objects.filter(pk=task_id).values().get()
    answer = staff.post(f"tasks/{task_id}/{verb}/")
    assert answer.status_code == 409
    assert str(task_id) in answer.json()["detail"]
    assert Task.objects.filter(pk=task_id).values().get() == before
    assert AuditEntry.objects.count() == 0


@pytest.mark.parametrize("task_id", ["1", "0", str(2**63), "9" * 40])
@pytest.mark.parametrize("verb", ["cancel", "run-now", "retry", "release", "reset-cron"])
def test_an_unknown_task_is_not_found(staff: Caller, verb: str, task_id: str) -> None:
    assert staff.post(f"tasks/{task_id}/{verb}/").status_code == 404
    assert staff.get(f"tasks/{task_id}/").status_code == 404


@pytest.mark.parametrize("task_id", ["x", "-1", "1.5", "%00"])
def test_an_address_that_no_task_has_is_not_found(staff: Caller, task_id: str) -> None:
    assert staff.get(f"tasks/{task_id}/").status_code == 404


def test_the_runs_of_a_task_are_listed_newest_first_with_their_traceback(
    staff: Caller, clock: ManualClock
) -> None:
    worker = Worker(clock)
    task_id = request("demo", retry=Retry(3, 0, 0), now=clock.now)
    request("demo", now=clock.advance(seconds=1))
    for number in range(3):
        worker.fail(next(one for one in worker.claim() if one.task_id == task_id), f"no {number}")
        clock.advance(seconds=1)
    Run.objects.filter(error="no 1").update(trace="Traceback (most recent call last)")
    body = ok(staff.get(f"tasks/{task_id}/runs/?page_size=2"))
    assert [run["error"] for run in body["results"]] == ["no 2", "no 1"]
    assert body["results"][1]["trace"] == "Traceback (most recent call last)"
    rest = ok(staff.client.get(body["next"]))
    assert [run["error"] for run in rest["results"]] == ["no 0"]


def ids(answer: Any) -> list[int]:
    return [task["id"] for task in ok(answer)["results"]]


def test_tasks_are_listed_newest_first_without_what_may_be_large(staff: Caller) -> None:
    first, second = request("demo", input="x" * 1000), request("demo")
    answer = staff.get("tasks/")
    assert ids(answer) == [second, first]
    assert "xxx" not in answer.content.decode()


def test_tasks_are_narrowed_by_what_they_do(staff: Caller, clock: ManualClock) -> None:
    worker = Worker(clock)
    running = request("demo", now=clock.now)
    worker.claim_one()
    due = request("demo", key="due", now=clock.now)
    waiting = request("demo", depends_on=[due], now=clock.now)
    scheduled = request("demo", after=3600, now=clock.now)
    retrying = request("demo", after=3600, now=clock.now)
    Task.objects.filter(pk=retrying).update(retry_count=1)
    held = quarantined(clock)
    expected = {
        "running": [running],
        "due": [due],
        "waiting": [waiting],
        "scheduled": [scheduled],
        "retrying": [retrying],
        "quarantined": [held],
        "finished": [],
        "pending": [retrying, scheduled, waiting, due],
    }
    assert {state: ids(staff.get(f"tasks/?state={state}")) for state in expected} == expected


def test_tasks_are_narrowed_by_kind_key_and_queue(staff: Caller) -> None:
    REGISTRY.add(make_kind("other"))
    one = request("demo", key="a", queue="slow")
    two = request("other", key="b")
    assert ids(staff.get("tasks/?kind=demo")) == [one]
    assert ids(staff.get("tasks/?key=b")) == [two]
    assert ids(staff.get("tasks/?queue=slow")) == [one]


@pytest.mark.parametrize(
    "query", ["state=asleep", "kid=demo", "kind=a%00b", "cursor=zzz", "ordering=input"]
)
def test_a_bad_filter_is_refused(staff: Caller, query: str) -> None:
    assert staff.get(f"tasks/?{query}").status_code in {400, 404}
