"""A cron expression in plain words, for the line below the input."""

from collections.abc import Iterable, Sequence

from scheduler.rules.cron.fields import Days, Fields, Weekdays

MONTH_NAMES = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
WEEKDAY_NAMES = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
ORDINALS = ("", "first", "second", "third", "fourth", "fifth")
NTH = {2: "nd", 3: "rd"}
WEEK = (1, 2, 3, 4, 5, 6, 0)  # as people say it
MOST_TIMES = 6  # more clock times than this are told by minutes and hours
FIXED_RULE = (
    "Fixed times run once a day: a time that the clock leaves out runs at the end of the gap, "
    "a time that comes twice runs the first time."
)
CLOCK_RULE = (
    "It follows the clock: nothing runs in an hour that is left out, "
    "and an hour that comes twice runs twice."
)
EN_DASH = "\N{EN DASH}"


def describe(fields: Fields) -> str:
    """Return for example `at 02:30 on Monday to Friday` or `every 15 minutes`."""
    time, says_days = _time(fields)
    days = _day_words(fields)
    if days == "every day" and says_days:
        days = ""
    return " ".join(part for part in (time, days, _months(fields), _years(fields)) if part)


def _time(fields: Fields) -> tuple[str, bool]:
    """Return the time of day, and whether it goes without "every day"."""
    minutes, hours, seconds = sorted(fields.minutes), sorted(fields.hours), sorted(fields.seconds)
    if len(minutes) * len(hours) <= MOST_TIMES and len(seconds) == 1:
        tail = f":{seconds[0]:02}" if seconds[0] else ""
        return "at " + listed(f"{h:02}:{m:02}{tail}" for h in hours for m in minutes), False
    words, whole_day = _minutes_of(minutes, hours)
    if seconds == [0]:
        return words, whole_day
    if words == "every minute":
        return _seconds(seconds, of_every_minute=True), whole_day
    return f"{_seconds(seconds, of_every_minute=False)}, {words}", whole_day


def _minutes_of(minutes: Sequence[int], hours: Sequence[int]) -> tuple[str, bool]:
    whole_day = len(hours) == 24  # noqa: PLR2004 - the hours of a day
    step = _cycle(minutes, 60)
    if step is not None:
        words = "every minute" if step == 1 else f"every {step} minutes"
        return (words if whole_day else f"{words} {_hours_span(hours)}"), whole_day
    every = _cycle(hours, 24)
    if every is None:
        of_hours = f"{plural('hour', hours)} {listed(ranges(hours))}"
    elif list(minutes) == [0]:
        return ("every hour" if every == 1 else f"every {every} hours"), True
    else:
        of_hours = "every hour" if every == 1 else f"every {every}{NTH.get(every, 'th')} hour"
    words = f"at {plural('minute', minutes)} {listed(ranges(minutes))} of {of_hours}"
    return words, every is not None


def _seconds(seconds: Sequence[int], *, of_every_minute: bool) -> str:
    step = _cycle(seconds, 60)
    if step is not None:
        return "every second" if step == 1 else f"every {step} seconds"
    tail = " of every minute" if of_every_minute else ""
    return f"at {plural('second', seconds)} {listed(ranges(seconds))}{tail}"


def _cycle(numbers: Sequence[int], span: int) -> int | None:
    """Return n if the numbers are each nth of `span`, evenly round it; a lone 0 is none."""
    step = span // len(numbers)
    return step if len(numbers) > 1 and list(numbers) == list(range(0, span, step)) else None


def _hours_span(hours: Sequence[int]) -> str:
    return "from " + listed(hour_spans(hours, " to "))


def hour_spans(hours: Iterable[int], joint: str = EN_DASH) -> list[str]:
    """Return the clock spans that whole hours cover: `04:00-04:59` with a dash between."""
    return [f"{low:02}:00{joint}{high:02}:59" for low, high in _runs(sorted(hours))]


def _day_words(fields: Fields) -> str:
    days, weekdays = fields.days, fields.weekdays
    if days.bare and weekdays.bare:
        return "every day"
    if weekdays.bare:
        return f"on {_days(days)}"
    if days.bare:
        return f"on {_weekdays(weekdays)}"
    if fields.both_days:
        return f"on {_days(days)}, if it is also {_weekdays(weekdays)}"
    return f"on {_days(days)} and on {_weekdays(weekdays)}, whichever comes"


def _days(days: Days) -> str:
    parts = []
    if days.plain:
        parts.append(f"{plural('day', days.plain)} {listed(ranges(sorted(days.plain)))}")
    if days.last:
        parts.append("the last day")
    if days.last_workday:
        parts.append("the last Monday-to-Friday day")
    parts += [f"the Monday-to-Friday day nearest to day {day}" for day in sorted(days.nearest)]
    return listed(parts) + " of the month"


def _weekdays(weekdays: Weekdays) -> str:
    parts = []
    if weekdays.plain:
        places = [place for place, day in enumerate(WEEK) if day in weekdays.plain]
        parts = ranges(places, [WEEKDAY_NAMES[day] for day in WEEK])
    named = [f"the {ORDINALS[nth]} {WEEKDAY_NAMES[day]}" for day, nth in sorted(weekdays.nth)]
    named += [f"the last {WEEKDAY_NAMES[day]}" for day in sorted(weekdays.last)]
    return listed([*parts, *named]) + (" of the month" if named else "")


def _months(fields: Fields) -> str:
    if len(fields.months) == len(MONTH_NAMES):
        return ""
    return "in " + listed(ranges(sorted(fields.months), ["", *MONTH_NAMES]))


def _years(fields: Fields) -> str:
    if fields.years is None:
        return ""
    return "in " + listed(ranges(sorted(fields.years)))


def ranges(numbers: Sequence[int], names: Sequence[str] | None = None) -> list[str]:
    """Return sorted numbers as texts, runs of three and more as `1 to 5`."""
    texts = []
    for low, high in _runs(numbers):
        ends = [str(each) if names is None else names[each] for each in range(low, high + 1)]
        texts += [f"{ends[0]} to {ends[-1]}"] if len(ends) > 2 else ends  # noqa: PLR2004
    return texts


def _runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def plural(word: str, numbers: Iterable[int]) -> str:
    """Return the word for one number, or with an s for more."""
    return word if len(tuple(numbers)) == 1 else word + "s"


def listed(parts: Iterable[str]) -> str:
    """Return `a`, `a and b`, `a, b and c`."""
    *few, last = parts
    return f"{', '.join(few)} and {last}" if few else last
