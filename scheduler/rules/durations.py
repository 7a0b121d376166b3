"""Durations as people write them (`1h 30m`): read exactly, written back in the same language.

Nanoseconds are whole numbers inside and `timedelta` outside. What is read is what the Rust crate
humantime 2.4 reads, so that files written for it mean the same here.
"""

import re
from datetime import timedelta

LONGEST = 64
MOST = 2**64 - 1  # of seconds, of a written number, and of a part's nanoseconds
NS_PER_SECOND = 1_000_000_000
MONTH = 2_630_016  # seconds: 30.44 days
YEAR = 31_557_600  # seconds: 365.25 days
UNITS_IN_WORDS = "ns, us, ms, s, m (minutes), h, d, w, M (months), y"

_NAMES = {
    1: "ns nsec nanos",
    1_000: "us µs usec",
    1_000_000: "ms msec millis",
    NS_PER_SECOND: "s sec secs second seconds",
    60 * NS_PER_SECOND: "m min mins minute minutes",
    3_600 * NS_PER_SECOND: "h hr hrs hour hours",
    86_400 * NS_PER_SECOND: "d day days",
    604_800 * NS_PER_SECOND: "w wk wks week weeks",
    MONTH * NS_PER_SECOND: "M month months",
    YEAR * NS_PER_SECOND: "y yr yrs year years",
}
_UNITS = {name: size for size, names in _NAMES.items() for name in names.split()}
_MONTH_OR_YEAR = MONTH * NS_PER_SECOND
_HOUR = 3_600 * NS_PER_SECOND

# The blanks of Unicode's White_Space, which Python's \s is not quite.
_BLANK = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_PART = re.compile(
    rf"[{_BLANK}]*(?P<whole>[0-9][0-9{_BLANK}]*)(?P<point>\.(?P<tail>[0-9{_BLANK}]*))?"
    rf"(?P<unit>[A-Za-zµ]*)"
)
_NOT_DIGITS = re.compile("[^0-9]")
_BLANKS = re.compile(f"[{_BLANK}]*")

# What a value is written with, largest first: (nanoseconds, one, many).
_WRITTEN = (
    (YEAR * NS_PER_SECOND, "year", "years"),
    (MONTH * NS_PER_SECOND, "month", "months"),
    (86_400 * NS_PER_SECOND, "day", "days"),
    (_HOUR, "h", "h"),
    (60 * NS_PER_SECOND, "m", "m"),
    (NS_PER_SECOND, "s", "s"),
    (1_000_000, "ms", "ms"),
    (1_000, "us", "us"),
    (1, "ns", "ns"),
)


class DurationError(ValueError):
    """The text is no duration that can be taken; the message says what would be right."""


def parse_duration_ns(text: object, *, months: bool = True) -> int:
    """Return a duration in nanoseconds: `90s`, `1h 30m`, `1.5d`, or the text `0`.

    With `months` off, months and years are refused: they are not a fixed time.
    """
    if not isinstance(text, str):
        raise DurationError(f"a duration is a text such as 5m or 1h 30m, not {text!r:.40}")
    if len(text) > LONGEST:
        raise DurationError(f"a duration has at most {LONGEST} characters, this has {len(text)}")
    if text == "0":
        return 0
    if _BLANKS.fullmatch(text):
        raise DurationError("a duration is missing; write a number and a unit, such as 5m")
    total, place = 0, 0
    while not _BLANKS.fullmatch(text, place):
        part = _PART.match(text, place)
        if part is None:
            raise DurationError(_no_number(text, place))
        total += _part_ns(part, text, months=months)
        if total > MOST * NS_PER_SECOND + NS_PER_SECOND - 1:
            raise DurationError(f"{text!r} is more than can be counted")
        place = part.end()
    return total


def _part_ns(part: re.Match[str], text: str, *, months: bool) -> int:
    """Return the nanoseconds of one number with its unit."""
    number = _NOT_DIGITS.sub("", part["whole"])
    unit = part["unit"]
    if not unit:
        raise DurationError(_no_unit(part, text, number))
    size = _UNITS.get(unit)
    if size is None:
        near = f"did you mean {unit.lower()!r}? " if unit.lower() in _UNITS else ""
        raise DurationError(f"{text!r}: {unit!r} is no unit; {near}units are {UNITS_IN_WORDS}")
    if not months and size >= _MONTH_OR_YEAR:
        raise DurationError(f"{text!r}: months and years are not a fixed time; write days")
    # Each part must fit by itself: its nanoseconds below a second, its seconds from there on.
    grain = 1 if size < NS_PER_SECOND else NS_PER_SECOND
    value = int(number) * size
    if int(number) > MOST or value > MOST * grain:
        raise DurationError(f"{text!r}: {number}{unit} is more than can be counted")
    if part["point"] is not None:
        value += _fraction_ns(_NOT_DIGITS.sub("", part["tail"]), size, text)
    return value


def _fraction_ns(digits: str, size: int, text: str) -> int:
    """Return the nanoseconds of the digits behind a point; they must come out exact."""
    if not digits:
        raise DurationError(f"{text!r}: digits are missing behind the point; write 1.5h")
    # Whole seconds for hours and longer, whole nanoseconds below.
    grain = NS_PER_SECOND if size >= _HOUR else 1
    numerator = int(digits) * (size // grain)
    denominator = int("1" + "0" * len(digits))
    share, rest = divmod(numerator, denominator)
    if rest or denominator > MOST or numerator > MOST:
        raise DurationError(f"{text!r}: the fraction does not come out exact; use a smaller unit")
    return share * grain


def _no_number(text: str, place: int) -> str:
    blanks = _BLANKS.match(text, place)
    found = text[blanks.end() if blanks else place :][:1]
    if found in {"-", "+"}:
        return f"{text!r}: a duration has no sign; write 5m"
    if place == 0 and text[:1] in {"P", "p"}:
        return f"{text!r} looks like ISO 8601; write PT5M as 5m"
    if ":" in text:
        return f"{text!r}: write hours and minutes with units, such as 1h 30m"
    return (
        f"{text!r}: a number is expected before {found!r}; write numbers with units, such as 1h 30m"
    )


def _no_unit(part: re.Match[str], text: str, number: str) -> str:
    found = text[part.end() :][:1]
    if found == ":":
        return f"{text!r}: write hours and minutes with units, such as 1h 30m"
    if found:
        return f"{text!r}: {found!r} is not allowed here; write numbers with units, such as 1h 30m"
    return (
        f"{text!r}: the unit is missing, for example {number[:20]}s or {number[:20]}m; "
        f"units are {UNITS_IN_WORDS}"
    )


def parse_duration(
    text: object,
    *,
    least: timedelta | None = None,
    most: timedelta | None = None,
    months: bool = True,
) -> timedelta:
    """Return a duration as `timedelta`, between `least` and `most` where they are given.

    Refused as well: what is finer than a microsecond, and what a `timedelta` cannot hold.
    """
    nanoseconds = parse_duration_ns(text, months=months)
    microseconds, rest = divmod(nanoseconds, 1_000)
    if rest:
        raise DurationError(f"{text!r} is finer than a microsecond; write 1us or more")
    try:
        value = timedelta(microseconds=microseconds)
    except OverflowError:
        raise DurationError(f"{text!r} is too long; write at most 999999999d") from None
    if least is not None and value < least:
        raise DurationError(f"{text!r} is too short; write at least {format_duration(least)}")
    if most is not None and value > most:
        raise DurationError(f"{text!r} is too long; write at most {format_duration(most)}")
    return value


def format_duration(value: timedelta | int) -> str:
    """Return the shortest text of a `timedelta` or of nanoseconds: `1day 2h`, `1s 500ms`, `0s`."""
    rest = value // timedelta(microseconds=1) * 1_000 if isinstance(value, timedelta) else value
    if rest < 0:
        raise ValueError("a duration is not negative")
    words = []
    for size, one, many in _WRITTEN:
        count, rest = divmod(rest, size)
        if count:
            words.append(f"{count}{one if count == 1 else many}")
    return " ".join(words) or "0s"
