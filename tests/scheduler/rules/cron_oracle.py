"""A second evaluator, by trying: slow, obvious, and without the library."""

import calendar
from datetime import datetime, timedelta

from scheduler.rules.cron import Cron

LAST_YEAR = 50  # no wait of the calendar is longer


def next_match(cron: Cron, after: datetime) -> datetime | None:
    """Return the first naive minute after `after` that matches, or None within 50 years."""
    start = after.replace(second=0, microsecond=0) + timedelta(minutes=1)
    day = start.replace(hour=0, minute=0)
    while day.year <= start.year + LAST_YEAR:
        if day.month not in cron.fields.months:
            day = (day.replace(day=1) + timedelta(days=32)).replace(day=1)
            continue
        if day_matches(cron, day):
            for hour in sorted(cron.fields.hours):
                for minute in sorted(cron.fields.minutes):
                    found = day.replace(hour=hour, minute=minute)
                    if found >= start:
                        return found
        day += timedelta(days=1)
    return None


def matches(cron: Cron, wall: datetime) -> bool:
    """Return whether a naive wall clock is one of the expression's."""
    fields = cron.fields
    return (
        wall.second in fields.seconds
        and wall.minute in fields.minutes
        and wall.hour in fields.hours
        and wall.month in fields.months
        and day_matches(cron, wall)
    )


def day_matches(cron: Cron, wall: datetime) -> bool:
    """Return whether both day fields, or either, take this day."""
    fields = cron.fields
    by_day, by_weekday = _by_day(cron, wall), _by_weekday(cron, wall)
    if fields.both_days or fields.days.bare or fields.weekdays.bare:
        return by_day and by_weekday
    return by_day or by_weekday


def _by_day(cron: Cron, wall: datetime) -> bool:
    days, length = cron.fields.days, calendar.monthrange(wall.year, wall.month)[1]
    workdays = [
        day for day in range(1, length + 1) if calendar.weekday(wall.year, wall.month, day) < 5
    ]
    nearest = {
        min(workdays, key=lambda day: (abs(day - wanted), -day if day < wanted else day))
        for wanted in days.nearest
        if wanted <= length
    }
    return (
        wall.day in days.plain
        or (days.last and wall.day == length)
        or (days.last_workday and wall.day == workdays[-1])
        or wall.day in nearest
    )


def _by_weekday(cron: Cron, wall: datetime) -> bool:
    weekdays, length = cron.fields.weekdays, calendar.monthrange(wall.year, wall.month)[1]
    weekday = wall.isoweekday() % 7
    return (
        weekday in weekdays.plain
        or (weekday, (wall.day + 6) // 7) in weekdays.nth
        or (weekday in weekdays.last and wall.day + 7 > length)
    )
