"""From fields to the expressions that the library evaluates, on naive wall clocks alone.

The library never sees two day conditions joined by OR, and never `#`, `W` or `L` beside anything
else: each way in which a day can match is a branch of its own, and the earliest result wins.
"""

import calendar
import copy
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from croniter import croniter

from scheduler.rules.cron.errors import CronError
from scheduler.rules.cron.fields import Days, Fields, Weekdays

MOST_BRANCHES = 32
# The longest wait of the calendar is 40 years: a leap day on a given weekday around 2100.
YEARS_BETWEEN = 50
SECOND = timedelta(seconds=1)
SATURDAY = 6
LENGTHS: dict[int, tuple[int, ...]] = {
    month: (30,) if month in {4, 6, 9, 11} else (31,) for month in range(1, 13)
}
LENGTHS[2] = (28, 29)

DayKind = Literal["any", "plain", "last", "last workday", "nearest"]
WeekdayKind = Literal["any", "plain", "nth", "last"]


@dataclass(frozen=True, slots=True)
class DayPart:
    """One way for the day of the month to match."""

    kind: DayKind
    days: tuple[int, ...] = ()

    def text(self) -> str:
        """Return the library's day field; for workdays it admits too much, see `matches`."""
        match self.kind:
            case "any":
                return "*"
            case "last":
                return "l"
            case "nearest":
                return f"{self.days[0]}w"
            case "last workday":
                return "26,27,28,29,30,31"
            case "plain":
                return ",".join(map(str, self.days))

    def matches(self, day: int, weekday: int, length: int) -> bool:
        """Whether it holds on a day (Sunday = 0) of a month with `length` days."""
        match self.kind:
            case "any":
                return True
            case "plain":
                return day in self.days
            case "last":
                return day == length
            case "last workday":
                return day == _workday_before(length, weekday + length - day)
            case "nearest":
                wanted = self.days[0]
                # A month without the day has no nearest weekday to it.
                return wanted <= length and day == _nearest_workday(
                    wanted, (weekday + wanted - day) % 7, length
                )


@dataclass(frozen=True, slots=True)
class WeekdayPart:
    """One way for the weekday to match."""

    kind: WeekdayKind
    weekdays: tuple[int, ...] = ()
    nth: int = 0

    def text(self) -> str:
        """Return the library's weekday field."""
        match self.kind:
            case "any":
                return "*"
            case "plain":
                return ",".join(map(str, self.weekdays))
            case "nth":
                return f"{self.weekdays[0]}#{self.nth}"
            case "last":
                return f"l{self.weekdays[0]}"

    def matches(self, day: int, weekday: int, length: int) -> bool:
        """Whether it holds on a day (Sunday = 0) of a month with `length` days."""
        if self.kind == "any":
            return True
        if weekday not in self.weekdays:
            return False
        if self.kind == "nth":
            return (day - 1) // 7 + 1 == self.nth
        return self.kind == "plain" or day > length - 7


def _workday_before(day: int, weekday: int) -> int:
    """Return `day`, or the Friday before it if it is on a weekend."""
    return day - {SATURDAY: 1, 0: 2}.get(weekday % 7, 0)


def _nearest_workday(day: int, weekday: int, length: int) -> int:
    """Return the Monday-Friday day nearest to `day` within its month."""
    if weekday == SATURDAY:
        return day - 1 if day > 1 else day + 2
    if weekday == 0:
        return day + 1 if day < length else day - 2
    return day


@dataclass(frozen=True, slots=True)
class Branch:
    """One expression of the library with its filter."""

    day: DayPart
    weekday: WeekdayPart
    walker: croniter = field(compare=False, repr=False)

    def next_after(self, wall: datetime) -> datetime | None:
        """Return the first match strictly after the naive `wall`, or None."""
        latest = wall.year + YEARS_BETWEEN
        while wall.year <= latest:
            # A copy, for the walker keeps its place and other threads use it too.
            try:
                found = copy.copy(self.walker).get_next(datetime, start_time=wall)
            except (ValueError, OverflowError):  # no match, or past the end of the calendar
                return None
            assert isinstance(found, datetime)
            if self._holds_on(found):
                return found
            wall = found.replace(hour=23, minute=59, second=59)
        return None

    def _holds_on(self, found: datetime) -> bool:
        if self.day.kind in {"any", "plain", "last"}:
            return True
        length = calendar.monthrange(found.year, found.month)[1]
        return self.day.matches(found.day, found.isoweekday() % 7, length)


@dataclass(frozen=True, slots=True)
class Walk:
    """All branches of an expression, and its years."""

    branches: tuple[Branch, ...]
    years: tuple[int, ...] | None

    def next_after(self, wall: datetime) -> datetime | None:
        """Return the first match strictly after the naive `wall`, or None: never again."""
        while True:
            if self.years is not None and wall.year not in self.years:
                later = next((year for year in self.years if year > wall.year), None)
                if later is None:
                    return None
                wall = datetime(later, 1, 1) - SECOND  # noqa: DTZ001 - a wall clock
            found = self._earliest(wall)
            if found is None or self.years is None or found.year in self.years:
                return found
            wall = found

    def _earliest(self, wall: datetime) -> datetime | None:
        if len(self.branches) == 1:
            return self.branches[0].next_after(wall)
        found = (branch.next_after(wall) for branch in self.branches)
        return min((one for one in found if one is not None), default=None)


def walk(fields: Fields) -> Walk:
    """Return what evaluates the fields; branches that can never match are left out."""
    pairs = _pairs(fields)
    if len(pairs) > MOST_BRANCHES:
        raise CronError(
            f"the day fields name {len(pairs)} alternatives, at most {MOST_BRANCHES} are taken; "
            "write ranges, or split it into two schedules"
        )
    branches = tuple(
        Branch(day, weekday, croniter(_expression(fields, day, weekday), 0.0, day_or=False))
        for day, weekday in pairs
        if can_match(day, weekday, fields.months)
    )
    years = None if fields.years is None else tuple(sorted(fields.years))
    return Walk(branches, years)


def can_match(day: DayPart, weekday: WeekdayPart, months: Iterable[int]) -> bool:
    """Whether any month that exists has a day for both; each month shape comes some year."""
    return any(
        day.matches(number, (first + number) % 7, length)
        and weekday.matches(number, (first + number) % 7, length)
        for length in sorted({length for month in months for length in LENGTHS[month]})
        for first in range(7)
        for number in range(1, length + 1)
    )


def _pairs(fields: Fields) -> list[tuple[DayPart, WeekdayPart]]:
    """Return the day conditions whose OR is the expression's own."""
    days, weekdays = _day_parts(fields.days), _weekday_parts(fields.weekdays)
    if fields.both_days or fields.days.bare or fields.weekdays.bare:
        return [(day, weekday) for day in days for weekday in weekdays]
    any_day, any_weekday = DayPart("any"), WeekdayPart("any")
    return [
        *((day, any_weekday) for day in days),
        *((any_day, weekday) for weekday in weekdays),
    ]


def _day_parts(days: Days) -> list[DayPart]:
    parts = [DayPart("nearest", (day,)) for day in sorted(days.nearest)]
    if days.last_workday:
        parts.insert(0, DayPart("last workday"))
    if days.last:
        parts.insert(0, DayPart("last"))
    if len(days.plain) == 31:  # noqa: PLR2004 - every day of any month
        return [DayPart("any")]
    if days.plain:
        parts.insert(0, DayPart("plain", tuple(sorted(days.plain))))
    return parts


def _weekday_parts(weekdays: Weekdays) -> list[WeekdayPart]:
    if len(weekdays.plain) == 7:  # noqa: PLR2004 - every day of the week
        return [WeekdayPart("any")]
    parts = [WeekdayPart("nth", (day,), nth) for day, nth in sorted(weekdays.nth)]
    parts += [WeekdayPart("last", (day,)) for day in sorted(weekdays.last)]
    if weekdays.plain:
        parts.insert(0, WeekdayPart("plain", tuple(sorted(weekdays.plain))))
    return parts


def _expression(fields: Fields, day: DayPart, weekday: WeekdayPart) -> str:
    texts = [
        _listed(fields.minutes, 60),
        _listed(fields.hours, 24),
        day.text(),
        _listed(fields.months, 12),
        weekday.text(),
    ]
    if fields.seconds != {0}:
        texts.append(_listed(fields.seconds, 60))  # the library reads seconds last
    return " ".join(texts)


def _listed(numbers: frozenset[int], full: int) -> str:
    return "*" if len(numbers) == full else ",".join(map(str, sorted(numbers)))
