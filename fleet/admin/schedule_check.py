"""What a schedule will do, told before it is saved and on its pages."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from django.utils import timezone

from fleet.flow.manifests import local_zone
from fleet.rules.calendar import At, lower
from fleet.rules.manifest import ScheduleManifest
from fleet.rules.plain_words import target_words, when_words, zone_words
from fleet.rules.preview import diagnostics, empty_note, preview
from fleet.rules.when import Calendar

WEEK_DAYS = 7
# A week of fires at every minute is more than a picture can tell.
MOST_FIRES_OF_A_WEEK = 2_000


@dataclass(frozen=True, slots=True)
class Fire:
    """One time at which it fires, on three clocks."""

    at: datetime
    in_zone: str
    in_utc: str
    for_viewer: str


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a valid schedule says and will do."""

    words: str
    zone: str
    target: str
    fires: Sequence[Fire]
    no_fires: str
    a_day: int | None
    rule: str
    notes: Sequence[str]
    warnings: Sequence[str]


def forecast(manifest: ScheduleManifest, *, now: datetime, count: int = 5) -> Forecast:
    """Tell what the schedule does, with its next `count` fires."""
    local = local_zone()
    tz = manifest.zone(local)
    fires = preview(manifest, now=now, count=count, local=local)
    lowered = lower(manifest.when, tz) if isinstance(manifest.when, Calendar) else None
    repeats = lowered if lowered is not None and not isinstance(lowered, At) else None
    return Forecast(
        words=when_words(manifest.when),
        zone=zone_words(manifest),
        target=target_words(manifest.target, manifest.rollout),
        fires=[fire_of(fire, tz) for fire in fires],
        no_fires="" if fires else empty_note(manifest),
        a_day=repeats.per_day(tz, now) if repeats else None,
        rule=repeats.rule() if repeats else "",
        notes=diagnostics(manifest, now=now, local=local),
        warnings=[str(warning) for warning in manifest.warnings],
    )


def fire_of(moment: datetime, tz: ZoneInfo) -> Fire:
    """A time on the clocks of the schedule, of UTC, and of whoever looks."""
    form = "%a %Y-%m-%d %H:%M"
    return Fire(
        at=moment,
        in_zone=moment.astimezone(tz).strftime(f"{form} %Z"),
        in_utc=moment.astimezone(UTC).strftime(f"{form} UTC"),
        for_viewer=timezone.localtime(moment).strftime(f"{form} %Z"),
    )


def week_of(manifest: ScheduleManifest, *, now: datetime) -> list[tuple[str, list[int]]]:
    """How often it fires in each hour of the next seven days, in its own zone; empty for none."""
    if not isinstance(manifest.when, Calendar):
        return []
    local = local_zone()
    tz = manifest.zone(local)
    ends = now + timedelta(days=WEEK_DAYS)
    fires = preview(manifest, now=now, count=MOST_FIRES_OF_A_WEEK, local=local)
    first = now.astimezone(tz).date()
    days = [first + timedelta(days=offset) for offset in range(WEEK_DAYS)]
    hours = {day: [0] * 24 for day in days}
    for fire in fires:
        wall = fire.astimezone(tz)
        if fire < ends and wall.date() in hours:
            hours[wall.date()][wall.hour] += 1
    return [(f"{day:%a %m-%d}", hours[day]) for day in days]
