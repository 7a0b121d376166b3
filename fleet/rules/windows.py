"""When a schedule may start something: daily window, skip dates, active period.

Everything here is half-open, `[opens, closes)`, and computed in instants: a bound that a
change of the clock removes is the instant of the jump, one that it repeats is the first.
Comparing wall clocks instead would reopen a window in the second pass of a repeated hour.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from scheduler.rules.zones import at

_CLOCK = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")
_DAY = timedelta(days=1)
# A window that has no opening within this many days (all skipped, or lost in a jump) has none.
_LOOK_AHEAD_DAYS = 400
_FIRST_YEAR, _LAST_YEAR = 1970, 2199


class WindowError(ValueError):
    """The text is no window or no date; the message says what would be right."""


@dataclass(frozen=True, slots=True)
class Span:
    """Two UTC instants, the second excluded."""

    opens: datetime
    closes: datetime

    def covers(self, moment: datetime) -> bool:
        """Whether `moment` (aware) is inside."""
        return self.opens <= moment < self.closes


@dataclass(frozen=True, slots=True)
class Window:
    """A piece of each day; `end` before `start` means that it ends on the next day."""

    start: time
    end: time

    def __str__(self) -> str:
        return f"{self.start:%H:%M}-{self.end:%H:%M}"

    def opened_on(self, day: date, tz: ZoneInfo) -> Span:
        """The span that opens on `day`; empty where a jump of the clock swallows it."""
        last_day = day if self.end > self.start else day + _DAY
        opens = at(datetime.combine(day, self.start), tz)
        return Span(opens, max(opens, at(datetime.combine(last_day, self.end), tz)))

    def open_span(self, now: datetime, tz: ZoneInfo) -> Span | None:
        """The span that covers `now`, or None while the window is closed."""
        today = now.astimezone(tz).date()
        # Tomorrow's too: where the clock goes back over midnight it may have opened already.
        for day in (today - _DAY, today, today + _DAY):
            span = self.opened_on(day, tz)
            if span.covers(now):
                return span
        return None

    def is_open_at(self, now: datetime, tz: ZoneInfo) -> bool:
        """Whether `now` (aware) is inside the window of some day."""
        return self.open_span(now, tz) is not None

    def opens_at(self, now: datetime, tz: ZoneInfo) -> datetime | None:
        """The first instant from `now` on at which the window is open (UTC)."""
        return Hours(window=self).opens_at(now, tz)

    def closes_at(self, now: datetime, tz: ZoneInfo) -> datetime | None:
        """When the window that is open at `now` closes (UTC); None while it is closed."""
        span = self.open_span(now, tz)
        return span.closes if span else None


def parse_window(text: str) -> Window:
    """Read `HH:MM-HH:MM`; WindowError says what would be right."""
    left, dash, right = text.partition("-")
    if not dash:
        raise WindowError(f"{text!r} is no window: write HH:MM-HH:MM, for example 22:00-05:00")
    start, end = _parse_clock(left.strip(), text), _parse_clock(right.strip(), text)
    if start == end:
        raise WindowError(
            f"{text!r} is never open: start and end are the same; "
            "leave the window out to allow the whole day"
        )
    return Window(start, end)


def _parse_clock(part: str, whole: str) -> time:
    found = _CLOCK.fullmatch(part)
    if not found:
        raise WindowError(
            f"{whole!r}: {part!r} is no time of day; write HH:MM from 00:00 to 23:59, "
            "for example 09:00; midnight as an end is 00:00"
        )
    return time(int(found[1]), int(found[2]))


def parse_skip_date(text: str) -> date:
    """Read `YYYY-MM-DD`, blanks around it allowed; WindowError says what would be right."""
    trimmed = text.strip()
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", trimmed):
        raise WindowError(f"{text!r} is no date: write YYYY-MM-DD, for example 2026-12-25")
    try:
        day = date.fromisoformat(trimmed)
    except ValueError:
        raise WindowError(f"{text!r} is no date of the calendar") from None
    # Far years overflow when they are converted between zones.
    if not _FIRST_YEAR <= day.year <= _LAST_YEAR:
        raise WindowError(f"{text!r}: write a year from {_FIRST_YEAR} to {_LAST_YEAR}")
    return day


class Closed(StrEnum):
    """Why nothing may start now, in the order in which the gates ask."""

    SKIP_DATE = "skip date"
    WINDOW = "window"
    BAD_SKIP_DATE = "unreadable skip date"
    BAD_WINDOW = "unreadable window"


@dataclass(frozen=True, slots=True)
class Hours:
    """The daily window and the skipped dates of one schedule; what is unreadable blocks."""

    window: Window | None = None
    skip_dates: frozenset[date] = frozenset()
    bad_window: str | None = None
    bad_skip_date: str | None = None

    def closed_by(self, now: datetime, tz: ZoneInfo) -> Closed | None:
        """What forbids a start at `now`: dates first, then the window; None = allowed."""
        if self.bad_skip_date is not None:
            return Closed.BAD_SKIP_DATE
        if self._skipped(now, tz):
            return Closed.SKIP_DATE
        if self.bad_window is not None:
            return Closed.BAD_WINDOW
        if self.window and not self.window.is_open_at(now, tz):
            return Closed.WINDOW
        return None

    def allows(self, now: datetime, tz: ZoneInfo) -> bool:
        """Whether something may start at `now`."""
        return self.closed_by(now, tz) is None

    def closes_at(self, now: datetime, tz: ZoneInfo) -> datetime | None:
        """When the time that is open at `now` ends: close of the window or next skip date.

        None where it never ends, and where nothing is open.
        """
        if not self.allows(now, tz):
            return None
        ends = [self.window.closes_at(now, tz)] if self.window else []
        ends += [span.opens for span in self._skipped_spans(tz) if span.opens > now]
        return min((end for end in ends if end), default=None)

    def opens_at(self, now: datetime, tz: ZoneInfo) -> datetime | None:
        """The first instant from `now` on that is allowed; None = none within a year."""
        if self.bad_skip_date is not None or self.bad_window is not None:
            return None
        for span in self._spans_from(now, tz):
            moment = max(now.astimezone(UTC), span.opens)
            while (skipped := self._skipped(moment, tz)) is not None:
                moment = skipped.closes
            if moment < span.closes:
                return moment
        return None

    def _spans_from(self, now: datetime, tz: ZoneInfo) -> Iterator[Span]:
        today = now.astimezone(tz).date()
        for offset in range(-1, _LOOK_AHEAD_DAYS):
            day = today + offset * _DAY
            span = self.window.opened_on(day, tz) if self.window else _whole_day(day, tz)
            if span.closes > now:
                yield span

    def _skipped_spans(self, tz: ZoneInfo) -> Iterator[Span]:
        return (_whole_day(day, tz) for day in self.skip_dates)

    def _skipped(self, now: datetime, tz: ZoneInfo) -> Span | None:
        if not self.skip_dates:
            return None
        today = now.astimezone(tz).date()
        for day in self.skip_dates & {today - _DAY, today, today + _DAY}:
            span = _whole_day(day, tz)
            if span.covers(now):
                return span
        return None


def _whole_day(day: date, tz: ZoneInfo) -> Span:
    return Span(at(datetime.combine(day, time()), tz), at(datetime.combine(day + _DAY, time()), tz))


def read_hours(window: str | None, skip_dates: Iterable[str]) -> Hours:
    """The hours that stored texts mean. Never raises: what cannot be read closes the gate."""
    parsed, bad_window = None, None
    if window is not None:
        try:
            parsed = parse_window(window)
        except WindowError as error:
            bad_window = str(error)
    dates: set[date] = set()
    bad_date = None
    for text in skip_dates:
        try:
            dates.add(parse_skip_date(text))
        except WindowError as error:
            bad_date = bad_date or str(error)
    return Hours(parsed, frozenset(dates), bad_window, bad_date)


@dataclass(frozen=True, slots=True)
class Active:
    """The period `[starts_at, ends_at)` in which a schedule lives; None = unbounded."""

    starts_at: datetime | None = None
    ends_at: datetime | None = None
    # A bound that cannot be read closes the gate: it may have been meant to.
    unreadable: str | None = None

    def covers(self, now: datetime) -> bool:
        """Whether `now` is inside the period."""
        if self.unreadable is not None:
            return False
        started = self.starts_at is None or self.starts_at <= now
        return started and (self.ends_at is None or now < self.ends_at)

    def opens_at(self, now: datetime) -> datetime | None:
        """When the period begins, if it is still to come."""
        if self.unreadable is not None or self.starts_at is None or self.starts_at <= now:
            return None
        return self.starts_at
