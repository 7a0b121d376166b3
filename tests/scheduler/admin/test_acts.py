"""What people do to tasks from their pages: done by the verb, refused at the field, audited."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from scheduler.admin.queues import QueueAdmin
from scheduler.admin.task_verbs import VERBS
from scheduler.models import AuditEntry, Queue, Task
from scheduler.public import Retry, request
from scheduler.rules.states import TaskState
from tests.scheduler.admin.conftest import Visit
from tests.scheduler.admin.rows import make_rows, page
from tests.scheduler.make import reload

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


def nightly() -> int:
    return request("demo", key="nightly", cron="20 4 * * *")


def act(client: Client, verb: str, task_id: int, **data: object) -> Any:
    return client.post(page("task", verb, task_id), data)


def row(task_id: int) -> dict[str, Any]:
    return dict(Task.objects.filter(pk=task_id).values().get())


def test_a_changed_cron_is_in_force_and_survives_the_next_registration(root: Client) -> None:
    task_id = nightly()
    answer = act(root, "cron", task_id, cron="0 5 * * *", reason="backups")
    assert answer.status_code == 302
    request("demo", key="nightly", cron="30 2 * * *")  # the next release of the program
    task = reload(task_id)
    assert (task.cron, task.cron_override) == ("30 2 * * *", "0 5 * * *")
    assert task.due_at is not None
    assert (task.due_at.hour, task.due_at.minute) == (5, 0)


def test_an_act_is_written_down_with_who_and_why(root: Client) -> None:
    task_id = nightly()
    act(root, "cron", task_id, cron="0 5 * * *", reason="backups")
    entry = AuditEntry.objects.get()
    assert (entry.actor_kind, entry.actor_name, entry.reason) == ("user", "root", "backups")
    assert (entry.action, entry.object_kind, entry.object_id) == ("set cron", "task", str(task_id))
    assert entry.address == "127.0.0.1"
    assert entry.user == User.objects.get()


def test_a_reset_brings_back_the_cron_of_the_code(root: Client) -> None:
    task_id = nightly()
    act(root, "cron", task_id, cron="0 5 * * *")
    assert act(root, "reset-cron", task_id).status_code == 302
    task = reload(task_id)
    assert (task.cron_override, task.due_at and task.due_at.hour) == (None, 4)


@pytest.mark.parametrize(
    "cron",
    [
        "0 0 31 2 *",
        "61 * * * *",
        "R * * * *",
        "5-1 * * * *",
        "0 20 4 * * *",
        "",
        "* * * * *\0",
        "0 5 * *\u00a0*",
        "* " * 300,
        "@reboot",
        "0 5 * * * \x07",
    ],
)
def test_a_bad_cron_is_refused_at_its_field_and_changes_nothing(cron: str, root: Client) -> None:
    task_id = nightly()
    before = row(task_id)
    answer = act(root, "cron", task_id, cron=cron)
    assert answer.status_code == 200
    assert list(answer.context["form"].errors) == ["cron"]
    assert (row(task_id), AuditEntry.objects.count()) == (before, 0)


def test_the_form_shows_the_cron_in_force(root: Client) -> None:
    task_id = nightly()
    assert root.get(page("task", "cron", task_id)).context["form"]["cron"].value() == "20 4 * * *"
    act(root, "cron", task_id, cron="0 5 * * *")
    assert root.get(page("task", "cron", task_id)).context["form"]["cron"].value() == "0 5 * * *"


def test_a_task_is_run_now(root: Client) -> None:
    task_id = request("demo", after=HOUR)
    assert act(root, "run-now", task_id).status_code == 302
    assert reload(task_id).ready is True


def test_a_task_is_cancelled_and_started_again(root: Client) -> None:
    task_id = request("demo", after=HOUR)
    act(root, "cancel", task_id)
    assert reload(task_id).state == TaskState.CANCELLED
    act(root, "retry", task_id)
    assert reload(task_id).state == TaskState.PENDING
    assert list(AuditEntry.objects.order_by("pk").values_list("action", flat=True)) == [
        "cancel",
        "retry",
    ]


def test_a_quarantined_task_is_released(root: Client) -> None:
    task_id = request("demo")
    Task.objects.filter(pk=task_id).update(state=TaskState.QUARANTINED, ready=False)
    act(root, "release", task_id)
    assert reload(task_id).state == TaskState.PENDING


def test_the_due_time_is_typed_on_the_clock_of_whoever_types(root: Client) -> None:
    task_id = request("demo", after=HOUR)
    root.cookies["kanade_zone"] = "Europe/Budapest"
    assert act(root, "due", task_id, due="2030-07-01T12:00:00").status_code == 302
    assert reload(task_id).due_at == datetime(2030, 7, 1, 10, 0, tzinfo=UTC)


@pytest.mark.parametrize("due", ["", "soon", "9999-12-31T23:59:59", "2030-02-30T00:00"])
def test_a_bad_time_is_refused_and_changes_nothing(due: str, root: Client) -> None:
    task_id = request("demo", after=HOUR)
    before = row(task_id)
    answer = act(root, "due", task_id, due=due)
    assert list(answer.context["form"].errors) == ["due"]
    assert (row(task_id), AuditEntry.objects.count()) == (before, 0)


def test_retries_are_changed_and_taken_away(root: Client) -> None:
    task_id = request("demo")
    act(root, "retries", task_id, times="3", least="5", most="60")
    assert reload(task_id).retry == Retry(3, 5, 60)
    act(root, "retries", task_id, times="", least="5", most="60")
    assert reload(task_id).retry is None


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"times": "-1", "least": "1", "most": "1"}, "times"),
        ({"times": "70000", "least": "1", "most": "1"}, "times"),
        ({"times": "1", "least": "x", "most": "1"}, "least"),
        ({"times": "1", "least": "1", "most": str(2**31)}, "most"),
    ],
)
def test_bad_retries_are_refused_at_their_field(
    data: dict[str, str], field: str, root: Client
) -> None:
    task_id = request("demo")
    answer = act(root, "retries", task_id, **data)
    assert list(answer.context["form"].errors) == [field]
    assert reload(task_id).retry is None


@pytest.mark.parametrize("verb", ["retry", "release"])
def test_what_a_state_does_not_allow_is_said_and_changes_nothing(verb: str, root: Client) -> None:
    task_id = request("demo", after=HOUR)
    before = row(task_id)
    answer = act(root, verb, task_id)
    assert answer.status_code == 200
    assert "is pending" in str(answer.context["form"].errors)
    assert (row(task_id), AuditEntry.objects.count()) == (before, 0)


def test_one_refusal_does_not_stop_the_others_of_a_list(root: Client) -> None:
    live, over = request("demo", after=HOUR), request("demo", after=HOUR)
    act(root, "cancel", over)
    chosen = {"action": "cancel", "_selected_action": [live, over], "confirmed": "yes"}
    answer = root.post(page("task", "changelist"), chosen, follow=True)
    said = [str(message) for message in answer.context["messages"]]
    assert said[-2:] == [
        f"demo: task {over} is cancelled; it cannot be cancelled",
        "Cancel: done for 1 of 2.",
    ]
    assert reload(live).state == TaskState.CANCELLED


def test_the_buttons_are_those_that_make_sense_now(root: Client) -> None:
    rows = make_rows()

    def titles(key: int) -> list[str]:
        found = root.get(page("task", "change", key)).context["verbs"]
        return [verb["title"] for verb in found]

    assert titles(rows.task.pk) == [
        "Change cron",
        "Reset cron",
        "Change due time",
        "Change retries",
        "Cancel",
    ]
    assert titles(rows.ended.pk) == ["Start again"]
    assert titles(rows.quarantined.pk) == ["Release", "Change cron", "Change retries", "Cancel"]


ACTS = [("task", verb) for verb in VERBS] + [("queue", verb) for verb in QueueAdmin.verbs]
MAY = {"task": {"operator", "fleet-admin"}, "queue": {"fleet-admin"}}


@pytest.mark.parametrize("role", ["viewer", "operator", "approver", "fleet-admin", "nobody"])
@pytest.mark.parametrize(("model", "verb"), ACTS, ids=lambda one: getattr(one, "name", one))
def test_only_some_roles_may_act(role: str, model: str, verb: Any, visit: Visit) -> None:
    client = visit(role)
    rows = make_rows()
    key = getattr(rows, model).pk
    allowed = role in MAY[model]
    opened = client.get(page(model, verb.name, key)).status_code
    posted = client.post(page(model, verb.name, key), {}).status_code
    assert opened == (200 if allowed else 403)
    assert (posted in {200, 302}) if allowed else (posted == 403)
    if not allowed:
        assert (reload(rows.task.pk).state, AuditEntry.objects.count()) == ("pending", 1)
        assert Queue.objects.get().paused is True


@pytest.mark.parametrize("role", ["viewer", "operator", "approver", "fleet-admin", "nobody"])
def test_a_list_offers_a_role_its_acts_alone(role: str, visit: Visit) -> None:
    client = visit(role)
    make_rows()
    for model, verbs in (("task", VERBS), ("queue", QueueAdmin.verbs)):
        answer = client.get(page(model, "changelist"))
        if answer.status_code == 403:
            continue
        form = answer.context["action_form"]
        offered = {name for name, _ in form.fields["action"].choices if name} if form else set()
        may = role in MAY[model]
        assert offered == ({verb.name for verb in verbs if verb.for_many} if may else set())


@pytest.mark.parametrize("role", ["viewer", "approver", "nobody"])
def test_an_act_posted_to_a_list_by_hand_is_refused(role: str, visit: Visit) -> None:
    client = visit(role)
    rows = make_rows()
    chosen = {"action": "cancel", "_selected_action": [rows.task.pk], "confirmed": "yes"}
    client.post(page("task", "changelist"), chosen)
    assert reload(rows.task.pk).state == TaskState.PENDING


def test_an_act_without_the_csrf_token_changes_nothing(visit: Visit) -> None:
    visit("root")
    task_id = request("demo", after=HOUR)
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.get())
    assert act(client, "cancel", task_id).status_code == 403
    assert reload(task_id).state == TaskState.PENDING


def test_reading_a_page_of_an_act_changes_nothing(root: Client) -> None:
    task_id = request("demo", after=HOUR)
    before = row(task_id)
    root.get(page("task", "cancel", task_id))
    assert row(task_id) == before
