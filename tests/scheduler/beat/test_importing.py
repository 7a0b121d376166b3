"""`importbeat`: rows of django-celery-beat become tasks, and the two never both fire."""

import json
from datetime import datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from django_celery_beat.models import (
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    PeriodicTask,
    PeriodicTasks,
    SolarSchedule,
)

from scheduler.beat import sending
from scheduler.models import AuditEntry, Task
from tests.clock import ManualClock

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch, clock: ManualClock) -> ManualClock:
    sending.register()
    monkeypatch.setattr(timezone, "now", clock)
    return clock


def cron(**fields: str) -> CrontabSchedule:
    schedule: CrontabSchedule = CrontabSchedule.objects.create(
        **{"minute": "0", "hour": "4", "timezone": "Europe/Budapest", **fields}
    )
    return schedule


def periodic(name: str = "nightly", **fields: Any) -> PeriodicTask:
    if not fields.keys() & {"crontab", "interval", "clocked", "solar"}:
        fields["crontab"] = cron()
    row: PeriodicTask = PeriodicTask.objects.create(name=name, task="app.tasks.go", **fields)
    return row


def message(**fields: str) -> dict[str, Any]:
    """What a task sends."""
    found = Task.objects.get(**fields).input
    assert isinstance(found, dict)
    return found


def run(*arguments: str) -> tuple[str, str]:
    """The command's two outputs."""
    out, err = StringIO(), StringIO()
    call_command("importbeat", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_a_row_becomes_a_task_and_is_disabled(clock: ManualClock) -> None:
    periodic(crontab=cron(day_of_month="13", day_of_week="5"), args='["a"]')
    before = PeriodicTasks.last_change()
    clock.advance(1)

    out, err = run()

    task = Task.objects.get()
    assert (task.kind, task.key, task.cron) == ("celery.send", "nightly", "0 4 13 * 5")
    assert (task.day_rule, task.tz) == ("and", "Europe/Budapest")
    assert task.due_at == datetime.fromisoformat("2026-03-13T04:00:00+01:00")
    assert message()["args"] == ["a"]
    assert (task.retry_times, task.retry_min, task.retry_max) == (50, 5, 300)
    row = PeriodicTask.objects.get()
    assert (row.enabled, row.last_run_at) == (False, None)
    changed = PeriodicTasks.last_change()
    assert before is not None
    assert changed is not None
    assert changed > before
    assert out.splitlines()[-1] == "1 imported, 0 left alone"
    assert err == ""


def test_a_dry_run_prints_the_plan_and_changes_nothing() -> None:
    periodic("a")
    periodic("b", enabled=False)

    out, _ = run("--dry-run")

    assert out.splitlines() == [
        (
            "import  a: 0 4 * * * Europe/Budapest, both day fields must match, "
            "first at 2026-03-03T03:00:00+00:00"
        ),
        "leave   b: is disabled",
        "1 would be imported, 1 left alone",
    ]
    assert not Task.objects.exists()
    assert PeriodicTask.objects.filter(enabled=True).count() == 1


def test_a_second_run_does_nothing_more() -> None:
    periodic()
    run()
    task = Task.objects.values().get()

    out, _ = run()

    assert out.splitlines() == ["leave   nightly: is disabled", "0 imported, 1 left alone"]
    assert Task.objects.values().get() == task


def test_a_row_that_was_enabled_again_overwrites_its_task() -> None:
    row = periodic()
    run()
    row.args, row.enabled = '["new"]', True
    row.save()

    run()

    assert message()["args"] == ["new"]
    assert not PeriodicTask.objects.filter(enabled=True).exists()


@pytest.mark.parametrize("arguments", [[], ["--dry-run"]], ids=["import", "dry run"])
def test_what_cannot_be_carried_over_is_named_and_stays_with_beat(arguments: list[str]) -> None:
    solar = SolarSchedule.objects.create(event="sunrise", latitude=47, longitude=19)
    periodic("sun", solar=solar)
    periodic("never", crontab=cron(day_of_week="7"))
    periodic("good")
    out, err = StringIO(), StringIO()

    with pytest.raises(CommandError, match="2 rows cannot be carried over"):
        call_command("importbeat", *arguments, stdout=out, stderr=err)

    never, sun = err.getvalue().splitlines()
    assert never.startswith("cannot  never: beat itself never runs it: Invalid end range: 7 > 6.")
    assert sun.startswith("cannot  sun: it follows the sun (Sunrise (47.000000, 19.000000))")
    assert "import  good" in out.getvalue()
    enabled = set(PeriodicTask.objects.filter(enabled=True).values_list("name", flat=True))
    assert enabled == ({"sun", "never"} if not arguments else {"sun", "never", "good"})


def test_every_kind_of_schedule_is_read(clock: ManualClock) -> None:
    soon = clock.now + timedelta(minutes=90)
    moment = ClockedSchedule.objects.create(clocked_time=soon)
    periodic("clocked", clocked=moment, one_off=True)
    hourly = IntervalSchedule.objects.create(every=2, period=IntervalSchedule.HOURS)
    # As a row that ran: its save would forget the time.
    periodic("interval", interval=hourly)
    PeriodicTask.objects.filter(name="interval").update(last_run_at=clock.now - timedelta(hours=1))

    run()

    due = dict(Task.objects.values_list("key", "due_at"))
    assert due == {"clocked": soon, "interval": clock.now + timedelta(hours=1)}
    assert message(key="interval")["every"] == 7200


def test_the_message_is_routed_as_before() -> None:
    periodic(queue="mail", priority=5, headers=json.dumps({"a": "b"}), expire_seconds=30)

    run()

    assert message()["options"] == {
        "queue": "mail",
        "priority": 5,
        "expires": 30,
        "headers": {"a": "b", "periodic_task_name": "nightly"},
    }


def test_an_import_is_in_the_audit() -> None:
    periodic()

    run()

    entry = AuditEntry.objects.get()
    assert (entry.actor_kind, entry.action) == ("command", "import from beat")
    assert (entry.object_kind, entry.object_id) == ("task", str(Task.objects.get().pk))


def test_a_row_that_fails_half_way_stays_with_beat(monkeypatch: pytest.MonkeyPatch) -> None:
    periodic()
    monkeypatch.setattr(PeriodicTasks, "update_changed", _fail)

    with pytest.raises(ConnectionError):
        run()

    assert not Task.objects.exists()
    assert PeriodicTask.objects.get().enabled


def _fail() -> None:
    raise ConnectionError


def test_the_number_of_queries_for_a_row_is_fixed(django_assert_max_num_queries: Any) -> None:
    for number in range(3):
        periodic(f"row {number}")

    # To list them, and 8 with 8 savepoints for each.
    with django_assert_max_num_queries(1 + 3 * 16):
        run()


def test_a_row_is_handed_back_to_beat(clock: ManualClock) -> None:
    periodic()
    run()
    clock.advance(60)

    run("--hand-back", "nightly")

    row = PeriodicTask.objects.get()
    assert (row.enabled, row.last_run_at, row.date_changed) == (True, None, clock.now)
    assert Task.objects.get().state == "cancelled"
    actions = list(AuditEntry.objects.order_by("pk").values_list("action", flat=True))
    assert actions == ["import from beat", "cancel", "hand back to beat"]


def test_a_row_that_was_handed_back_can_be_imported_again() -> None:
    periodic()
    run()
    run("--hand-back", "nightly")

    run()

    assert Task.objects.live().count() == 1
    assert not PeriodicTask.objects.filter(enabled=True).exists()


@pytest.mark.parametrize(
    ("name", "why"), [("nightly", "is enabled already"), ("other", "does not exist")]
)
def test_what_beat_has_is_not_handed_back(name: str, why: str) -> None:
    periodic()

    with pytest.raises(CommandError, match=why):
        run("--hand-back", name)

    assert not AuditEntry.objects.exists()
