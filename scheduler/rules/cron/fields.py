"""What a cron expression is once it is read: seven fields as sets of numbers."""

from dataclasses import dataclass

MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


@dataclass(frozen=True, slots=True)
class Field:
    """One place of the expression: its name, its numbers, its names (from `low` or from 0)."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    star_high: int | None = None  # where `*` ends, if earlier than `high`

    @property
    def last_of_star(self) -> int:
        """Return the largest number that a star stands for."""
        return self.high if self.star_high is None else self.star_high


SECOND = Field("second", 0, 59)
MINUTE = Field("minute", 0, 59)
HOUR = Field("hour", 0, 23)
DAY = Field("day", 1, 31)
MONTH = Field("month", 1, 12, MONTHS)
WEEKDAY = Field("weekday", 0, 7, WEEKDAYS, star_high=6)
YEAR = Field("year", 1970, 2199)
ORDER = (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY, YEAR)


@dataclass(frozen=True, slots=True)
class Days:
    """The day field: plain numbers, the last day, the last Monday-Friday day, days nearest to n.

    `bare`: a lone `*` is among its items, so that it restricts nothing (`1-31` does).
    """

    plain: frozenset[int]
    last: bool = False
    last_workday: bool = False
    nearest: frozenset[int] = frozenset()
    bare: bool = False


@dataclass(frozen=True, slots=True)
class Weekdays:
    """The weekday field, Sunday = 0: plain numbers, (weekday, nth of the month), last of it."""

    plain: frozenset[int]
    nth: frozenset[tuple[int, int]] = frozenset()
    last: frozenset[int] = frozenset()
    bare: bool = False


@dataclass(frozen=True, slots=True)
class Fields:
    """A whole expression in numbers; `texts` has all seven fields in capitals, `typed` of them."""

    texts: tuple[str, ...]
    typed: int
    seconds: frozenset[int]
    minutes: frozenset[int]
    hours: frozenset[int]
    days: Days
    months: frozenset[int]
    weekdays: Weekdays
    years: frozenset[int] | None
    both_days: bool  # day and weekday must both match, if both are restricted

    @property
    def follows_the_clock(self) -> bool:
        """Whether it follows the wall clock through a change instead of naming fixed times."""
        return (
            self.texts[1].startswith("*") or self.texts[2].startswith("*") or len(self.seconds) > 1
        )
