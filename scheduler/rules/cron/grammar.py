"""What a cron expression may say: from text to sets of numbers, or an error that says why not.

Five fields (minute, hour, day, month, weekday), six with seconds in front, seven with years at the
end. The grammar is our own: the library behind the evaluation reads several texts in surprising
ways (`5-5` as the whole field, `5-1` as a wrap, `R` as a random number).
"""

import re

from scheduler.rules.cron.errors import (
    CronError,
    backwards,
    bad_character,
    bad_count,
    bad_item,
    bad_nickname,
    shown,
)
from scheduler.rules.cron.fields import (
    DAY,
    HOUR,
    MINUTE,
    MONTH,
    ORDER,
    SECOND,
    WEEKDAY,
    YEAR,
    Days,
    Field,
    Fields,
    Weekdays,
)

LONGEST = 512

NICKNAMES = {
    "@YEARLY": "0 0 1 1 *",
    "@ANNUALLY": "0 0 1 1 *",
    "@MONTHLY": "0 0 1 * *",
    "@WEEKLY": "0 0 * * 0",
    "@DAILY": "0 0 * * *",
    "@MIDNIGHT": "0 0 * * *",
    "@HOURLY": "0 * * * *",
}
_ITEM = re.compile(
    r"(?P<star>\*)(?:/(?P<star_step>[^/]*))?"
    r"|(?P<low>[^-/*]+)(?:-(?P<high>[^-/*]+))?(?:/(?P<step>[^/]*))?"
)
_NUMBER = re.compile(r"[0-9]{1,4}")
_NEAREST = re.compile(r"(?P<day>[0-9]{1,4})W")
_NTH = re.compile(r"(?P<weekday>[^#]+)#(?P<nth>[^#]+)")
_LAST = re.compile(r"(?P<weekday>[0-9]{1,4}|[A-Z]{3})L")


def read(text: str, *, both_days: bool, fields: tuple[int, ...]) -> Fields:
    """Return the fields of an expression; raise CronError."""
    parts = _split(text, fields)
    texts = (*(() if len(parts) > 5 else ("0",)), *parts)  # noqa: PLR2004 - the classical five
    texts = (*texts, "*") if len(texts) < len(ORDER) else texts
    second, minute, hour, day, month, weekday, year = texts
    both = both_days or weekday.startswith("+")
    return Fields(
        texts=texts,
        typed=len(parts),
        seconds=_plain(second, SECOND),
        minutes=_plain(minute, MINUTE),
        hours=_plain(hour, HOUR),
        days=_days(day),
        months=_plain(month, MONTH),
        weekdays=_weekdays(weekday.removeprefix("+")),
        years=None if year == "*" else _plain(year, YEAR),
        both_days=both,
    )


def _split(text: str, allowed: tuple[int, ...]) -> tuple[str, ...]:
    """Return the field texts in capitals, after the checks of the whole text."""
    if len(text) > LONGEST:
        raise CronError(f"a cron expression has at most {LONGEST} characters, this has {len(text)}")
    text = text.strip(" \t\r\n")
    for char in text:
        if not (" " <= char <= "~" or char == "\t"):
            raise CronError(bad_character(char))
    text = text.upper()
    if text.startswith("@"):
        text = _nickname(text)
        allowed = (5,)
    parts = text.split()
    if len(parts) not in allowed:
        raise CronError(bad_count(parts, allowed, tuple(NICKNAMES)))
    return tuple(parts)


def _nickname(text: str) -> str:
    if text not in NICKNAMES:
        raise CronError(bad_nickname(text, tuple(NICKNAMES)))
    return NICKNAMES[text]


def _plain(text: str, field: Field) -> frozenset[int]:
    """Return the numbers of a field without anything special in it."""
    return frozenset().union(*(numbers(part, field) for part in text.split(",")))


def _days(text: str) -> Days:
    """Return the day field: items, and L, LW, nW."""
    parts = ["*"] if text == "?" else text.split(",")
    nearest = [match for part in parts if (match := _NEAREST.fullmatch(part))]
    special = {"L", "LW", *(match.string for match in nearest)}
    return Days(
        plain=frozenset().union(*(numbers(part, DAY) for part in parts if part not in special)),
        last="L" in parts,
        last_workday="LW" in parts,
        nearest=frozenset(_number(match["day"], DAY, match.string) for match in nearest),
        bare="*" in parts,
    )


def _weekdays(text: str) -> Weekdays:
    """Return the weekday field: items, and d#n, d#L, dL."""
    parts = ["*"] if text == "?" else text.split(",")
    plain: set[int] = set()
    nth: set[tuple[int, int]] = set()
    last: set[int] = set()
    for part in parts:
        if match := _LAST.fullmatch(part):
            last.add(_weekday(match["weekday"], part))
        elif match := _NTH.fullmatch(part):
            weekday = _weekday(match["weekday"], part)
            if match["nth"] == "L":
                last.add(weekday)
            elif match["nth"] in {"1", "2", "3", "4", "5"}:
                nth.add((weekday, int(match["nth"])))
            else:
                raise CronError(f"weekday {shown(part)}: after # stand 1 to 5 or L, such as FRI#2")
        else:
            plain |= {number % 7 for number in numbers(part, WEEKDAY)}
    return Weekdays(frozenset(plain), frozenset(nth), frozenset(last), bare="*" in parts)


def _weekday(text: str, part: str) -> int:
    return _number(text, WEEKDAY, part) % 7


def numbers(part: str, field: Field) -> frozenset[int]:
    """Return the numbers of one item: `*`, `*/n`, `a`, `a-b`, `a-b/n`, `a/n` (to the maximum)."""
    match = _ITEM.fullmatch(part)
    if match is None:
        raise CronError(bad_item(part, field))
    if match["star"]:
        step = _step(match["star_step"], part, field)
        return frozenset(range(field.low, field.last_of_star + 1, step))
    low = _number(match["low"], field, part)
    step = _step(match["step"], part, field)
    if match["high"] is not None:
        high = _right_end(match, part, field)
    else:
        high = low if match["step"] is None else field.high
    if low > high:
        raise CronError(backwards(part, match["low"], match["high"], field))
    return frozenset(range(low, high + 1, step))


def _right_end(match: re.Match[str], part: str, field: Field) -> int:
    # A week may end with Sunday: MON-SUN. SUN-SUN is Sunday alone.
    if field is WEEKDAY and match["high"] == "SUN" and match["low"] != "SUN":
        return 7
    return _number(match["high"], field, part)


def _step(text: str | None, part: str, field: Field) -> int:
    if text is None:
        return 1
    if not _NUMBER.fullmatch(text) or int(text) == 0:
        raise CronError(f"{field.name} {shown(part)}: a step is a number from 1, such as */5")
    return int(text)


def _number(text: str, field: Field, part: str) -> int:
    """Return one number or name of a field."""
    if text in field.names:
        return field.names.index(text) + (1 if field is MONTH else 0)
    if not (text.isascii() and text.isdigit()):
        raise CronError(bad_item(part, field))
    if not _NUMBER.fullmatch(text) or not field.low <= int(text) <= field.high:
        raise CronError(f"{field.name} {shown(text)} is outside {field.low}-{field.high}")
    return int(text)
