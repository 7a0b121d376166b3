"""From fields to the expressions that the library evaluates, on naive wall clocks alone.

The library never sees two day conditions joined by OR, and never `#`, `W` or `L` beside anything
else: each way in which a day can match is a branch of its own, and the earliest result wins.
"""

import calendar
import copy
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from croniter import croniter

from scheduler.rules.cron.days import (
    DayPart,
    WeekdayPart,
    can_match,
    day_parts,
    weekday_parts,
)
from scheduler.rules.cron.errors import CronError
from scheduler.rules.cron.fields import Fields

MOST_BRANCHES = 32
# The longest wait of the calendar is 40 years: a leap day on a given weekday around 2100.
YEARS_BETWEEN = 50
SECOND = timedelta(seconds=1)


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


def _pairs(fields: Fields) -> list[tuple[DayPart, WeekdayPart]]:
    """Return the day conditions whose OR is the expression's own."""
    days, weekdays = day_parts(fields.days), weekday_parts(fields.weekdays)
    if fields.both_days or fields.days.bare or fields.weekdays.bare:
        return [(day, weekday) for day in days for weekday in weekdays]
    any_day, any_weekday = DayPart("any"), WeekdayPart("any")
    return [
        *((day, any_weekday) for day in days),
        *((any_day, weekday) for weekday in weekdays),
    ]


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
