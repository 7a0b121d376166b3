"""Compute the next times of calendars anew when the zone data or the server's zone changed.

A time is stored in UTC and was computed by the rules of its zone as they were known then.
"""

from datetime import datetime

from django.conf import settings

from fleet.flow.manifests import schedule_manifest
from fleet.flow.occurrences import next_time
from fleet.models import Schedule, Shape, TickMark
from fleet.rules.manifest import ManifestError
from scheduler.rules.zones import TZDATA_VERSION


def zone_data() -> str:
    """What the next times depend on beside the schedules themselves."""
    return f"{TZDATA_VERSION} {settings.TIME_ZONE}"


def rearm_calendars(mark: TickMark, *, now: datetime) -> int:
    """Move the times still to come that are computed otherwise today; return how many moved.

    What is due already stays due, and nothing fires because of the change.
    """
    current = zone_data()
    if mark.zone_data == current:
        return 0
    calendars = Schedule.objects.filter(
        shape=Shape.CALENDAR, runs_on_agent=False, enabled=True, next_fire_at__gt=now
    )
    moved = sum(_rearm(schedule, now) for schedule in calendars.iterator())
    TickMark.objects.filter(pk=mark.pk).update(zone_data=current)
    return moved


def _rearm(schedule: Schedule, now: datetime) -> int:
    try:
        following = next_time(schedule_manifest(schedule))(now)
    except ManifestError:
        # The tick says so about the schedule.
        return 0
    if following == schedule.next_fire_at:
        return 0
    unmoved = Schedule.objects.filter(pk=schedule.pk, next_fire_at=schedule.next_fire_at)
    return unmoved.update(next_fire_at=following)
