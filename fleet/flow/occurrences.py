"""The nominal times of calendars: each exists once, and is fired, skipped or missed."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from fleet.flow.manifests import local_zone
from fleet.models import Occurrence, OccurrenceState, Schedule
from fleet.rules import calendar
from fleet.rules.manifest import ScheduleManifest
from fleet.rules.when import Calendar
from scheduler.rules import misfire
from scheduler.rules.misfire import RunIt, SkipIt

SECOND = timedelta(seconds=1)
NOBODY_LOOKED = "nobody looked in time"


@dataclass(frozen=True, slots=True)
class Due:
    """A nominal time that is to fire now, and how many before it were given up with it."""

    nominal_at: datetime
    missed_before: int


def next_time(manifest: ScheduleManifest) -> Callable[[datetime], datetime | None]:
    """The function from an instant to the calendar's next one strictly after it."""
    when, tz = manifest.when, manifest.zone(local_zone())
    if not isinstance(when, Calendar):
        return lambda _: None
    return lambda after: calendar.next_fire(when, after, tz)


def due_occurrence(schedule: Schedule, manifest: ScheduleManifest, *, now: datetime) -> Due | None:
    """The nominal time of a calendar that is to fire now by its misfire policy.

    Times that the policy gives up are stored as missed and settled on the way. None = nothing is
    to fire; the schedule's next time is in the future then.
    """
    nominal_at = schedule.next_fire_at
    if nominal_at is None or nominal_at > now:
        return None
    policy = misfire.Misfire(manifest.misfire.value)
    match misfire.decide(policy, nominal_at, next_time(manifest), now=now):
        case RunIt(occurrence_at, missed):
            return Due(occurrence_at, missed)
        case SkipIt(next_at, missed):
            _store_missed(schedule, manifest, missed, now=now)
            _advance(schedule, nominal_at, next_at)
            return None


def settle_occurrence(
    schedule: Schedule,
    manifest: ScheduleManifest,
    due: Due,
    *,
    skipped: str = "",
    now: datetime,
) -> Occurrence | None:
    """Store that a nominal time fires, or is skipped for a reason, and go on to the next.

    None = it was settled before: then it must not fire again.
    """
    state = OccurrenceState.SKIPPED if skipped else OccurrenceState.FIRED
    stored = _store(schedule, due, state=state, reason=skipped, now=now)
    _advance(schedule, due.nominal_at, next_time(manifest)(due.nominal_at))
    return stored


def link(occurrence: Occurrence, execution_id: UUID) -> None:
    """Say which execution a nominal time became."""
    Occurrence.objects.filter(pk=occurrence.pk).update(execution_id=execution_id)


def skip(occurrence: Occurrence, *, reason: str) -> None:
    """Say that a nominal time could not fire after all."""
    Occurrence.objects.filter(pk=occurrence.pk).update(state=OccurrenceState.SKIPPED, reason=reason)


def _store_missed(
    schedule: Schedule, manifest: ScheduleManifest, missed: int, *, now: datetime
) -> None:
    """One row for all that were missed together, under the newest of them."""
    first = schedule.next_fire_at
    assert first is not None  # the caller found it due
    (newest,) = misfire.last_occurrences(first, next_time(manifest), now=now, most=1)
    due = Due(newest, max(missed - 1, 0))
    _store(schedule, due, state=OccurrenceState.MISSED, reason=NOBODY_LOOKED, now=now)


def _store(
    schedule: Schedule, due: Due, *, state: OccurrenceState, reason: str, now: datetime
) -> Occurrence | None:
    occurrence, is_new = Occurrence.objects.get_or_create(
        schedule=schedule,
        nominal_at=due.nominal_at,
        defaults={
            "state": state,
            "reason": reason,
            "missed_before": due.missed_before,
            "late_s": max((now - due.nominal_at) // SECOND, 0),
            "settled_at": now,
        },
    )
    return occurrence if is_new else None


def _advance(schedule: Schedule, settled: datetime, next_at: datetime | None) -> None:
    """Everything up to `settled` is settled; an edit that moved the next time meanwhile stands."""
    unmoved = Schedule.objects.filter(pk=schedule.pk, next_fire_at=schedule.next_fire_at)
    if unmoved.update(next_fire_at=next_at, settled_until=settled):
        schedule.next_fire_at, schedule.settled_until = next_at, settled
