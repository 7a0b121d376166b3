"""What a calendar schedule will do, and what an operator should know about it before it does."""

from collections.abc import Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from fleet.rules import calendar
from fleet.rules.bounds import read_active
from fleet.rules.calendar import At
from fleet.rules.manifest.schedules import ScheduleManifest
from fleet.rules.when import Calendar, When
from fleet.rules.windows import Window

DEFAULT_COUNT, MOST_COUNT = 5, 50
# A window that is never open at the hour of the fire must not make the search endless.
MAX_SCANNED = 4096


def preview(
    schedule: ScheduleManifest, *, now: datetime, count: int, local: ZoneInfo
) -> tuple[datetime, ...]:
    """The next `count` fires (UTC) strictly after `now` that its period and constraints allow.

    Reconcile schedules have none: they look every minute. Freeze and `enabled` are not asked.
    `local` is the zone that `tz: local` means.
    """
    if not isinstance(schedule.when, Calendar) or count <= 0:
        return ()
    tz = schedule.zone(local)
    active, hours = read_active(schedule.active, tz), schedule.constraints.hours
    found: list[datetime] = []
    for fire in fires_after(schedule.when, now, tz):
        if active.covers(fire) and hours.allows(fire, tz):
            found.append(fire)
        if len(found) == count or (active.ends_at is not None and fire >= active.ends_at):
            break
    return tuple(found)


def fires_after(when: Calendar, now: datetime, tz: ZoneInfo) -> Iterator[datetime]:
    """The fires (UTC) after `now`, whatever else forbids them; at most MAX_SCANNED."""
    fire = calendar.next_fire(when, now, tz)
    for _ in range(MAX_SCANNED):
        if fire is None:
            return
        yield fire
        fire = calendar.next_fire(when, fire, tz)


def empty_note(schedule: ScheduleManifest) -> str:
    """Why a preview shows no fires."""
    if isinstance(schedule.when, Calendar):
        return (
            "No fires: its date is past, or its active period, window and skip dates "
            "allow none of them."
        )
    return "Looks every minute and runs where a success is missing or too old."


def is_outside_window(when: When, window: Window | None) -> bool:
    """Whether a calendar's time of day never falls into the window."""
    if not isinstance(when, Calendar) or when.at is None or window is None:
        return False
    moment = calendar.parse_at(when.at)
    clock = moment.time() if isinstance(moment, datetime) else moment
    if window.start < window.end:
        return not window.start <= clock < window.end
    return window.end <= clock < window.start


def diagnostics(schedule: ScheduleManifest, *, now: datetime, local: ZoneInfo) -> tuple[str, ...]:
    """What to show as badges: the schedule is kept, and does not do what it seems to say."""
    tz = schedule.zone(local)
    notes: list[str] = []
    if isinstance(schedule.when, Calendar):
        notes.extend(_calendar_notes(schedule.when, now, tz))
    if is_outside_window(schedule.when, schedule.constraints.window):
        notes.append(f"fires outside its window {schedule.constraints.window}: it never runs")
    if not schedule.target.is_specified and schedule.rollout is None:
        notes.append("has no target: nothing is dispatched")
    active = read_active(schedule.active, tz)
    if active.ends_at is not None and active.ends_at <= now:
        notes.append("its active period is over")
    return tuple(notes)


def _calendar_notes(when: Calendar, now: datetime, tz: ZoneInfo) -> Iterator[str]:
    lowered = calendar.lower(when, tz)
    if not isinstance(lowered, At):
        yield from lowered.warnings(tz, now) if when.cron is not None else ()
        return
    if lowered.instant < now:
        yield f"its time is past: {lowered.instant.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    if note := calendar.clock_change_note(lowered, tz):
        yield note
