"""The wall clock of `when: {calendar: …}`: reading `at` and `days`, and what comes next.

`at` with `days` is lowered to a five-field cron, so that there is one engine for repeating
times; a dated `at` is one instant.
"""

import re
from dataclasses import dataclass
from datetime import datetime, time
from zoneinfo import ZoneInfo

from fleet.rules.bounds import FIRST_YEAR, LAST_YEAR
from fleet.rules.problems import shown
from fleet.rules.when import Calendar
from scheduler.rules import cron
from scheduler.rules.cron import Cron
from scheduler.rules.zones import at, instants

MAX_DAYS = 32
_CLOCK = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")
_DATED = re.compile(r"([0-9]{4})([-/])([0-9]{2})\2([0-9]{2})([T ])([0-9]{2}:[0-9]{2})")
_DAY = "(?:mon|tue|wed|thu|fri|sat|sun|[0-7])"
_TOKEN = re.compile(rf"\*|{_DAY}(?:-{_DAY}|#[1-5]|L)?", re.IGNORECASE)


class CalendarError(ValueError):
    """The text is no `at` or no day; the message says what would be right."""


@dataclass(frozen=True, slots=True)
class At:
    """One moment: its wall clock as typed and the instant (UTC) that it means."""

    wall: datetime
    instant: datetime


def parse_at(text: str) -> time | datetime:
    """A time of day that repeats, or a naive date-time that comes once."""
    trimmed = text.strip()
    dated = _DATED.fullmatch(trimmed)
    # `2026/06/10T09:00` is none of the three dated forms.
    if dated and dated[2] + dated[5] != "/T":
        return _dated(dated, text)
    clock = _CLOCK.fullmatch(trimmed)
    if clock:
        return time(int(clock[1]), int(clock[2]))
    raise CalendarError(
        f"{shown(text)} is no time: write HH:MM from 00:00 to 23:59, "
        "or YYYY-MM-DD HH:MM for a single fire"
    )


def _dated(found: re.Match[str], text: str) -> datetime:
    year, _, month, day, _, clock = found.groups()
    try:
        wall = datetime.fromisoformat(f"{year}-{month}-{day}T{clock}:00")
    except ValueError:
        raise CalendarError(f"{shown(text)} is no date and time of the calendar") from None
    if not FIRST_YEAR <= wall.year <= LAST_YEAR:
        raise CalendarError(f"{shown(text)}: write a year from {FIRST_YEAR} to {LAST_YEAR}")
    return wall


def parse_day(token: str) -> str:
    """The token itself if it names days: `mon`, `1`, `mon-fri`, `tue#2`, `friL` or `*`."""
    if _TOKEN.fullmatch(token):
        return token
    if token in {"L", "l"}:
        raise CalendarError(f"{shown(token)} needs a weekday, for example friL (last Friday)")
    raise CalendarError(
        f"{shown(token)} names no day: write mon to sun or 0 to 7, a range such as mon-fri, "
        "tue#2 (second Tuesday) or friL (last Friday)"
    )


def lower(calendar: Calendar, tz: ZoneInfo) -> Cron | At:
    """What a valid calendar means: five cron fields, or one instant in `tz`.

    A wall clock that a jump removes is the instant of the jump; of a repeated one, the first.
    """
    if calendar.cron is not None:
        return cron.parse(calendar.cron)
    moment = parse_at(calendar.at or "")
    if isinstance(moment, datetime):
        return At(moment, at(moment, tz))
    days = ",".join(token.lower() for token in calendar.days) or "*"
    return cron.parse(f"{moment.minute} {moment.hour} * * {days}")


def next_fire(calendar: Calendar, after: datetime, tz: ZoneInfo) -> datetime | None:
    """The first fire (UTC) strictly after `after`; None = never again."""
    lowered = lower(calendar, tz)
    if isinstance(lowered, At):
        return lowered.instant if lowered.instant > after else None
    return lowered.next_after(after, tz)


def oneshot(calendar: Calendar, tz: ZoneInfo) -> At | None:
    """The single moment of a dated `at`; None for calendars that repeat."""
    lowered = lower(calendar, tz)
    return lowered if isinstance(lowered, At) else None


def clock_change_note(moment: At, tz: ZoneInfo) -> str | None:
    """What to tell about a one-shot that a change of the clock touches; None on other days."""
    found = instants(moment.wall, tz)
    if len(found) == 1:
        return None
    local = moment.instant.astimezone(tz)
    if not found:
        return (
            f"{moment.wall:%Y-%m-%d %H:%M} does not exist in {tz.key}: the clock jumps over it; "
            f"it fires at {local:%H:%M}"
        )
    return (
        f"{moment.wall:%Y-%m-%d %H:%M} comes twice in {tz.key}; it fires at the first, "
        f"{local:%H:%M %Z}"
    )
