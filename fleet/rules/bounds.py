"""From when until when: the bounds of active periods and of freezes, as an operator types them.

A date is that day's first instant in the record's zone; a date-time carries its own offset.
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from fleet.rules.problems import shown
from fleet.rules.windows import Active
from scheduler.rules.zones import at, zone

FIRST_YEAR, LAST_YEAR = 1970, 2199
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INSTANT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2}:[0-9]{2}:)([0-9]{2})(\.[0-9]+)?"
    r"([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
# Where on Earth a day begins first and last, with an hour to spare.
_EASTMOST, _WESTMOST = timedelta(hours=15), timedelta(hours=13)


class BoundError(ValueError):
    """The text is no bound; the message says what would be right."""


def zone_named(name: str, default: ZoneInfo) -> ZoneInfo:
    """The zone that a record's `tz` means: `local` is `default`, `utc`, or an IANA name."""
    if name == "local":
        return default
    return zone("UTC") if name == "utc" else zone(name)


def parse_bound(text: str, tz: ZoneInfo) -> datetime:
    """The instant (UTC) that a bound means: a date in `tz`, or a date-time with its offset.

    A midnight that a jump of the clock removes is the instant of the jump; of a repeated one
    the first counts.
    """
    bound = _read(text)
    return bound if isinstance(bound, datetime) else at(datetime.combine(bound, time()), tz)


def _read(text: str) -> date | datetime:
    """A UTC instant, or a date whose zone is still to be applied."""
    found = _INSTANT.fullmatch(text)
    if not found and not _DATE.fullmatch(text):
        raise BoundError(
            f"{shown(text)} is no date: write YYYY-MM-DD, or a date-time with its offset "
            "such as 2026-07-01T09:00:00+02:00"
        )
    try:
        bound = _instant(found) if found else date.fromisoformat(text)
    except (ValueError, OverflowError):
        raise BoundError(f"{shown(text)} is no date of the calendar") from None
    # Far years overflow when they are converted between zones.
    if not FIRST_YEAR <= bound.year <= LAST_YEAR:
        raise BoundError(f"{shown(text)}: write a year from {FIRST_YEAR} to {LAST_YEAR}")
    return bound


def _instant(found: re.Match[str]) -> datetime:
    day, clock, seconds, fraction, offset = found.groups()
    # A leap second is the second before it, as clocks without leap seconds show it.
    seconds = "59" if seconds == "60" else seconds
    stamp = f"{day}T{clock}{seconds}{(fraction or '')[:7]}{offset.upper().replace('Z', '+00:00')}"
    return datetime.fromisoformat(stamp).astimezone(UTC)


@dataclass(frozen=True, slots=True)
class Bounds:
    """A half-open period as typed; None = without that bound."""

    starts: str | None = None
    ends: str | None = None

    def order_problem(self, tz: ZoneInfo | None) -> str | None:
        """What is wrong when the start is not before the end; None where all is well.

        `tz` None = the zone is not known here (the PC's own): only what is the wrong way round
        in every zone is named. Unreadable bounds are another problem and answer None.
        """
        try:
            wrong = self._is_reversed(tz)
        except BoundError:
            return None
        return "must be strictly before until" if wrong else None

    def _is_reversed(self, tz: ZoneInfo | None) -> bool:
        if self.starts is None or self.ends is None:
            return False
        if tz is not None:
            return parse_bound(self.starts, tz) >= parse_bound(self.ends, tz)
        starts, ends = _read(self.starts), _read(self.ends)
        if isinstance(starts, datetime) == isinstance(ends, datetime):
            return starts >= ends
        return _earliest(starts) >= _latest(ends)


def _earliest(bound: date | datetime) -> datetime:
    if isinstance(bound, datetime):
        return bound
    return datetime.combine(bound, time(), UTC) - _EASTMOST


def _latest(bound: date | datetime) -> datetime:
    if isinstance(bound, datetime):
        return bound
    return datetime.combine(bound, time(), UTC) + _WESTMOST


def read_active(bounds: Bounds, tz: ZoneInfo) -> Active:
    """The period that stored texts mean. Never raises: what cannot be read closes the gate."""
    try:
        starts = None if bounds.starts is None else parse_bound(bounds.starts, tz)
        ends = None if bounds.ends is None else parse_bound(bounds.ends, tz)
    except BoundError as error:
        return Active(unreadable=str(error))
    return Active(starts, ends)
