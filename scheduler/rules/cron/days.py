"""The ways in which a day can match: of the month, and of the week (Sunday = 0).

Each way knows the text by which the library finds its days, and whether a day is truly one: the
library's `31W` means the 30th of a short month as well, and it knows no last Monday-Friday day.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from scheduler.rules.cron.fields import Days, Weekdays

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


def can_match(day: DayPart, weekday: WeekdayPart, months: Iterable[int]) -> bool:
    """Whether any month that exists has a day for both; each month shape comes some year."""
    return any(
        day.matches(number, (first + number) % 7, length)
        and weekday.matches(number, (first + number) % 7, length)
        for length in sorted({length for month in months for length in LENGTHS[month]})
        for first in range(7)
        for number in range(1, length + 1)
    )


def day_parts(days: Days) -> list[DayPart]:
    """Return the alternatives of the day field."""
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


def weekday_parts(weekdays: Weekdays) -> list[WeekdayPart]:
    """Return the alternatives of the weekday field."""
    if len(weekdays.plain) == 7:  # noqa: PLR2004 - every day of the week
        return [WeekdayPart("any")]
    parts = [WeekdayPart("nth", (day,), nth) for day, nth in sorted(weekdays.nth)]
    parts += [WeekdayPart("last", (day,)) for day in sorted(weekdays.last)]
    if weekdays.plain:
        parts.insert(0, WeekdayPart("plain", tuple(sorted(weekdays.plain))))
    return parts
