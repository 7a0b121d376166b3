"""django-celery-beat's rows become tasks, one transaction each; afterwards they are disabled."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from django.db import transaction
from django_celery_beat.models import CrontabSchedule, PeriodicTask, PeriodicTasks

from scheduler.beat.sending import KIND, RETRY
from scheduler.models import Task
from scheduler.public import Actor, cancel, record_act, request
from scheduler.rules.beat import (
    Ask,
    BeatRow,
    Clocked,
    Crontab,
    Interval,
    Step,
    Trigger,
    Unknown,
    plan,
)

SCHEDULES = ("crontab", "interval", "clocked", "solar")
ROUTING = ("queue", "exchange", "routing_key", "priority")
# Of CrontabSchedule, in cron's order, and as celery's object calls them.
FIELDS = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")


def plan_import(*, now: datetime) -> Iterator[Step]:
    """Yield what would become of each row, by name; change nothing."""
    rows = PeriodicTask.objects.select_related(*SCHEDULES).order_by("name")
    for row in rows.iterator():
        yield plan(read(row), now=now)


def import_all(*, actor: Actor, clock: Callable[[], datetime]) -> Iterator[Step]:
    """Carry over each row that can be, by name; yield what became of it."""
    for pk in list(PeriodicTask.objects.order_by("name").values_list("pk", flat=True)):
        step = _import_one(pk, actor=actor, now=clock())
        if step is not None:
            yield step


def _import_one(pk: int, *, actor: Actor, now: datetime) -> Step | None:
    with transaction.atomic():
        row = PeriodicTask.objects.select_for_update().filter(pk=pk).first()
        if row is None:
            return None
        step = plan(read(row), now=now)
        if step.ask is not None:
            _carry(row, step.ask, step.words, actor=actor, now=now)
    return step


def _carry(row: Any, ask: Ask, words: str, *, actor: Actor, now: datetime) -> None:
    task_id = request(
        KIND,
        key=ask.key,
        input=ask.input,
        at=ask.at,
        cron=ask.cron,
        tz=ask.tz,
        day_rule="and" if ask.cron else "or",
        retry=RETRY,
        now=now,
    )
    # Without its last run, as beat itself disables: else it would catch up when enabled again.
    PeriodicTask.objects.filter(pk=row.pk).update(enabled=False, last_run_at=None)
    # A beat that runs looks here before each of its ticks.
    PeriodicTasks.update_changed()
    record_act(
        actor,
        "import from beat",
        object_kind="task",
        object_id=task_id,
        after={"periodic_task": row.name, "when": words},
        now=now,
    )


class HandBackError(ValueError):
    """The row cannot be given back to beat; the message says why."""


def hand_back(name: str, *, actor: Actor, now: datetime) -> None:
    """Enable a row again and cancel its task, so that beat sends its messages from now on.

    Raises HandBackError if there is no such row, or beat has it.
    """
    with transaction.atomic():
        rows = PeriodicTask.objects.filter(name=name)
        # Changed now: a row without a last run counts from its last change.
        if not rows.filter(enabled=False).update(enabled=True, last_run_at=None, date_changed=now):
            why = "is enabled already" if rows.exists() else "does not exist"
            raise HandBackError(f"the PeriodicTask {name!r} {why}")
        PeriodicTasks.update_changed()
        for task_id in Task.objects.of_key(KIND, name).values_list("pk", flat=True):
            cancel(task_id, actor=actor, reason="handed back to beat", now=now)
        record_act(
            actor,
            "hand back to beat",
            object_kind="periodic task",
            object_id=name,
            now=now,
        )


def read(row: Any) -> BeatRow:
    """Return a PeriodicTask as plain values."""
    routing = {name: getattr(row, name) for name in ROUTING if getattr(row, name) is not None}
    return BeatRow(
        name=row.name,
        task=row.task,
        trigger=_trigger(row),
        enabled=row.enabled,
        args=row.args,
        kwargs=row.kwargs,
        headers=row.headers or "{}",
        routing=routing,
        expires=row.expires,
        expire_seconds=row.expire_seconds,
        one_off=row.one_off,
        start_time=row.start_time,
        last_run_at=row.last_run_at,
        total_run_count=row.total_run_count,
        date_changed=row.date_changed,
    )


def _trigger(row: Any) -> Trigger:
    chosen = [name for name in SCHEDULES if getattr(row, f"{name}_id") is not None]
    match chosen:
        case ["crontab"]:
            return _crontab(row.crontab)
        case ["interval"]:
            return Interval(row.interval.schedule.run_every)
        case ["clocked"]:
            return Clocked(row.clocked.clocked_time)
        case ["solar"]:
            return Unknown(f"it follows the sun ({row.solar}); Kanade has no such trigger")
        case []:
            return Unknown("it has no schedule")
        case _:
            return Unknown(f"it has more than one schedule: {', '.join(chosen)}")


def _crontab(schedule: CrontabSchedule) -> Trigger:
    typed = [str(getattr(schedule, name)) for name in FIELDS]
    try:
        numbers = [frozenset(getattr(schedule.schedule, name)) for name in FIELDS]
    except ValueError as error:
        # Beat leaves such a row out without a word.
        return Unknown(f"beat itself never runs it: {error} Correct its crontab {schedule}")
    minute, hour, day, month, weekday = typed
    return Crontab((minute, hour, day, month, weekday), tuple(numbers), str(schedule.timezone))
