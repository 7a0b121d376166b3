"""What to tell a person who saves an expression: refusals, warnings, how often it runs."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo

from scheduler.rules.cron.branches import Walk
from scheduler.rules.cron.errors import QUARTZ, CronError, shown
from scheduler.rules.cron.fields import HOUR, MINUTE, ORDER, SECOND, Field, Fields
from scheduler.rules.cron.firing import LONGEST_GAP, next_fire
from scheduler.rules.cron.words import MONTH_NAMES, hour_spans, listed, ranges
from scheduler.rules.zones import at, first_change, instants, offset_at

ONE_SECOND = timedelta(seconds=1)
LOOK_AHEAD = timedelta(days=370)  # each change of the clock of one year
FIVE = 5
_STEPPED = re.compile(r"(?P<low>[^-/*]+|\*)(?:-(?P<high>[^/]+))?/(?P<step>[0-9]+)")
_ONCE = {SECOND: "once a minute", MINUTE: "once an hour", HOUR: "once a day"}


def require_clear(fields: Fields) -> None:
    """Refuse what is read, but seldom meant: a step without an end, Quartz's weekdays."""
    for field, match in _stepped(fields):
        if match["low"] != "*" and match["high"] is None:
            wanted = f"{match['low']}-{field.high}/{match['step']}"
            raise CronError(
                f"{field.name} {shown(match.string)} does not say where it ends; write {wanted}"
            )
    day, weekday = fields.texts[3], fields.texts[5]
    if fields.typed > FIVE and day == "?" and re.search("[0-9]", weekday.split("#")[0]):
        raise CronError(f"weekday {shown(weekday)} beside ?: {QUARTZ}")


def never(fields: Fields, walk: Walk, now: datetime, tz: tzinfo) -> str:
    """Say why an expression has no fire after `now`."""
    year = now.astimezone(tz).year
    if walk.years is not None and walk.years[-1] < year:
        return f"it can never run: its years are past; the last is {walk.years[-1]}"
    if walk.branches and walk.years is not None:
        return "it can never run: there is no such date left in its years"
    if fields.weekdays.bare:
        months = listed(ranges(sorted(fields.months), ["", *MONTH_NAMES]))
        return f"it never matches, in no year: there is no day {shown(fields.texts[3])} in {months}"
    return "it never matches, in no year: no such date fits both the day and the weekday field"


def warnings(fields: Fields, walk: Walk, now: datetime, tz: tzinfo) -> Iterator[str]:
    """Yield what may surprise: sentences, each about one point."""
    if not (fields.days.bare or fields.weekdays.bare):
        yield _both_days(fields)
    yield from _large_steps(fields)
    if len(fields.seconds) > 1:
        yield f"it runs more often than once a minute: {len(fields.seconds)} times"
    elif len(fields.minutes) == 60 and len(fields.hours) < 24:  # noqa: PLR2004
        spans = listed(hour_spans(fields.hours))
        yield (
            f"{60 * len(fields.hours)} runs a day, {spans}: every minute of the hour; "
            "for one run an hour write 0 as the minute"
        )
    if not fields.follows_the_clock:
        yield from _changes(walk, now, tz)


def per_day(fields: Fields, walk: Walk, now: datetime, tz: tzinfo) -> int:
    """Return how often it runs on the local day of its next run; 0 = never again."""
    fire = next_fire(walk, now, tz, follows_the_clock=fields.follows_the_clock)
    if fire is None:
        return 0
    day = fire.astimezone(tz).replace(tzinfo=None, fold=0, second=0)
    walls = [
        day.replace(hour=hour, minute=minute) for hour in fields.hours for minute in fields.minutes
    ]
    if fields.follows_the_clock:
        return len(fields.seconds) * sum(len(instants(wall, tz)) for wall in walls)
    return len({at(wall, tz) for wall in walls})


def _both_days(fields: Fields) -> str:
    if fields.both_days:
        return "day and weekday are both set: it runs only when BOTH match"
    return (
        "day and weekday are both set: it runs when EITHER matches; "
        f"for both write + before the weekday: +{shown(fields.texts[5])}"
    )


def _large_steps(fields: Fields) -> Iterator[str]:
    for field, match in _stepped(fields):
        low, high = field.low, field.last_of_star
        if match["high"] is not None and match["high"].isdigit() and match["low"].isdigit():
            low, high = int(match["low"]), int(match["high"])
        elif match["low"] != "*":
            continue
        if int(match["step"]) > high - low:
            once = f", {_ONCE[field]}" if field in _ONCE else ""
            span = "field" if match["low"] == "*" else "range"
            yield (
                f"{field.name} {shown(match.string)}: the step is larger than the {span}, "
                f"so that it means {field.name} {low} alone{once}"
            )


def _stepped(fields: Fields) -> Iterator[tuple[Field, re.Match[str]]]:
    for field, text in zip(ORDER, fields.texts, strict=True):
        for part in text.removeprefix("+").split(","):
            match = _STEPPED.fullmatch(part)
            if match:
                yield field, match


def _changes(walk: Walk, now: datetime, tz: tzinfo) -> Iterator[str]:
    """Yield the first coming gap and the first repeated stretch with a fixed time in it."""
    told: set[bool] = set()
    until = now + LOOK_AHEAD
    change = first_change(tz, now, until)
    while change is not None:
        before, after = offset_at(change - ONE_SECOND, tz), offset_at(change, tz)
        clock = change.replace(tzinfo=None)
        low, high = sorted((clock + before, clock + after))
        wall = walk.next_after(low - ONE_SECOND)
        forward = after > before
        if wall is not None and wall < high and forward not in told and high - low <= LONGEST_GAP:
            told.add(forward)
            where = f"on {wall:%Y-%m-%d} in {getattr(tz, 'key', tz)}"
            if forward:
                yield f"{wall:%H:%M} does not exist {where}: it runs at {high:%H:%M} that day"
            else:
                yield f"{wall:%H:%M} comes twice {where}: it runs the first time only"
        change = first_change(tz, change, until)
