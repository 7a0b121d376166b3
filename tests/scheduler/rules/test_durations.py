"""Durations: what is read, what is refused and why, how they are written."""

import time
from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.rules.durations import (
    LONGEST,
    UNITS_IN_WORDS,
    DurationError,
    format_duration,
    parse_duration,
    parse_duration_ns,
)

READ = {
    "1s": 1_000_000_000,
    "1sec": 1_000_000_000,
    "1m": 60_000_000_000,
    "1hr": 3_600_000_000_000,
    "1hrs": 3_600_000_000_000,
    "24h": 86_400_000_000_000,
    "1d": 86_400_000_000_000,
    "1day": 86_400_000_000_000,
    "1w": 604_800_000_000_000,
    "1wk": 604_800_000_000_000,
    "1M": 2_630_016_000_000_000,
    "1month": 2_630_016_000_000_000,
    "1y": 31_557_600_000_000_000,
    "1yr": 31_557_600_000_000_000,
    "1ms": 1_000_000,
    "1msec": 1_000_000,
    "1millis": 1_000_000,
    "1us": 1_000,
    "1\xb5s": 1_000,
    "1ns": 1,
    "1h30m": 5_400_000_000_000,
    "1h 30m": 5_400_000_000_000,
    "2h 37min": 9_420_000_000_000,
    "1hour 12min 5s": 4_325_000_000_000,
    "1d 2h 3m 4s": 93_784_000_000_000,
    "1h1h": 7_200_000_000_000,
    "30s 1h": 3_630_000_000_000,
    "1 h": 3_600_000_000_000,
    "  1h  ": 3_600_000_000_000,
    "1h\t30m": 5_400_000_000_000,
    "1 0 s": 10_000_000_000,
    "1 h 3 0 m": 5_400_000_000_000,
    "1hour30 min": 5_400_000_000_000,
    "0": 0,
    "1.5h": 5_400_000_000_000,
    "0.5s": 500_000_000,
    "1.1ms": 1_100_000,
    "5M": 13_150_080_000_000_000,
    "1 000s": 1_000_000_000_000,
    "1\xa0h": 3_600_000_000_000,
    "18446744073709551615s": 18_446_744_073_709_551_615_000_000_000,
}
REFUSED = (
    "00",
    "5",
    "60",
    "",
    ".5h",
    "1.",
    "1.h",
    "1.5",
    "0.333h",
    "0.5ns",
    "1,5h",
    "-5m",
    "+1h",
    "1h-30m",
    "1H",
    "1S",
    "1D",
    "1Min",
    "1h,30m",
    "1h and 30m",
    "01:00:00",
    "1:30",
    "PT5M",
    "1mo",
    "1micros",
    "1\u03bcs",
    "h",
    "1h30",
    "90 min 5",
    "2 hours min",
    "1m sec",
    "1e3s",
    "1_000s",
    "\uff11h",
    "18446744073709551616s",
    "584542046091y",
    "never",
    "18446744073709551615secs 1000000000.5nanos",
    "18446744073709551615s 1000000000ns",
    "18446744073709551615us",
    "1.00000000000000000000s",
)


# The rows of the fleet's own table, in its order; nothing stands for an error.
FLEET_ROWS: list[tuple[str, float | None, str]] = [
    ("30s", 30, "3.1#1"),
    ("5m", 300, "3.1#2"),
    ("1h", 3600, "3.1#3"),
    ("6h", 21_600, "3.1#4"),
    ("1d", 86_400, "3.1#5"),
    ("1h30m", 5400, "3.1#6 together"),
    ("1h 30m", 5400, "3.1#6 apart"),
    ("2h 37min", 9420, "3.1#7"),
    ("500ms", 0.5, "3.1#8"),
    ("0s", 0, "3.1#9 0s"),
    ("0", 0, "3.1#9 0"),
    ("1M", 2_630_016, "3.1#10"),
    ("10", None, "3.1#11"),
    ("", None, "3.1#12"),
    ("6x", None, "3.1#13"),
    ("5x", None, "3.1#14"),
    ("soon", None, "3.1#15"),
    ("-5m", None, "3.1#16"),
    ("1.5h", 5400, "3.1#17"),
]


@pytest.mark.parametrize(
    ("text", "seconds"), [pytest.param(text, length, id=row) for text, length, row in FLEET_ROWS]
)
def test_a_duration_of_the_fleet_is_read_or_refused(text: str, seconds: float | None) -> None:
    if seconds is not None:
        assert parse_duration(text) == timedelta(seconds=seconds)
        return
    with pytest.raises(DurationError):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "nanoseconds"), [pytest.param(*row, id=ascii(row[0])) for row in READ.items()]
)
def test_a_row_of_the_table_is_read_to_the_nanosecond(text: str, nanoseconds: int) -> None:
    assert parse_duration_ns(text) == nanoseconds


@pytest.mark.parametrize("text", [pytest.param(text, id=ascii(text)) for text in REFUSED])
def test_a_row_of_the_table_is_refused(text: str) -> None:
    with pytest.raises(DurationError):
        parse_duration_ns(text)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "a duration is missing; write a number and a unit, such as 5m"),
        ("   ", "a duration is missing; write a number and a unit, such as 5m"),
        (
            "5",
            f"'5': the unit is missing, for example 5s or 5m; units are {UNITS_IN_WORDS}",
        ),
        (
            "1H",
            f"'1H': 'H' is no unit; did you mean 'h'? units are {UNITS_IN_WORDS}",
        ),
        ("-5m", "'-5m': a duration has no sign; write 5m"),
        ("PT5M", "'PT5M' looks like ISO 8601; write PT5M as 5m"),
        ("01:30", "'01:30': write hours and minutes with units, such as 1h 30m"),
        ("0.333h", "'0.333h': the fraction does not come out exact; use a smaller unit"),
        ("1.h", "'1.h': digits are missing behind the point; write 1.5h"),
    ],
)
def test_a_refusal_says_what_is_wrong_and_what_would_be_right(text: str, sentence: str) -> None:
    with pytest.raises(DurationError) as caught:
        parse_duration_ns(text)

    assert str(caught.value) == sentence


def test_a_text_longer_than_the_limit_is_refused_before_it_is_read() -> None:
    assert parse_duration_ns("1" + " " * (LONGEST - 2) + "s") == 1_000_000_000

    with pytest.raises(DurationError, match="at most 64 characters, this has 65"):
        parse_duration_ns("1" + " " * (LONGEST - 1) + "s")


@pytest.mark.parametrize("value", [None, 5, 1.5, b"5m", ["5m"], timedelta(minutes=5)])
def test_what_is_no_text_is_refused(value: object) -> None:
    with pytest.raises(DurationError, match="a duration is a text such as 5m or 1h 30m"):
        parse_duration_ns(value)


def test_months_and_years_can_be_refused_for_they_are_not_a_fixed_time() -> None:
    assert parse_duration("5m", months=False) == timedelta(minutes=5)

    for text in ("1M", "2 months", "1y", "1w 1year"):
        with pytest.raises(DurationError, match="not a fixed time; write days"):
            parse_duration(text, months=False)


def test_the_bounds_of_a_field_are_named_in_its_own_words() -> None:
    day = timedelta(days=1)

    assert parse_duration("24h", least=day, most=day) == day
    with pytest.raises(DurationError, match="'23h 59m' is too short; write at least 1day"):
        parse_duration("23h 59m", least=day)
    with pytest.raises(DurationError, match="'24h 1s' is too long; write at most 1day"):
        parse_duration("24h 1s", most=day)


@pytest.mark.parametrize("text", ["0", "0s"])
def test_nothing_at_all_is_a_duration_where_the_field_allows_it(text: str) -> None:
    assert parse_duration(text) == timedelta(0)


def test_a_timedelta_holds_microseconds_and_no_more_than_its_limit() -> None:
    assert parse_duration("1us") == timedelta(microseconds=1)
    assert parse_duration("999999999d") == timedelta(days=999_999_999)

    with pytest.raises(DurationError, match="finer than a microsecond"):
        parse_duration("1ns")
    with pytest.raises(DurationError, match="too long; write at most 999999999d"):
        parse_duration("1000000000d")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (timedelta(0), "0s"),
        (timedelta(minutes=5), "5m"),
        (timedelta(hours=1, minutes=30), "1h 30m"),
        (timedelta(days=1), "1day"),
        (timedelta(days=2, hours=3), "2days 3h"),
        (timedelta(seconds=1, milliseconds=1, microseconds=1), "1s 1ms 1us"),
        (1_000_000_001, "1s 1ns"),
    ],
)
def test_a_duration_is_written_with_the_largest_units(value: timedelta | int, text: str) -> None:
    assert format_duration(value) == text


def test_a_negative_duration_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="not negative"):
        format_duration(timedelta(seconds=-1))


@given(st.integers(min_value=0, max_value=2**64 * 1_000_000_000 - 1))
def test_what_is_written_reads_as_the_same_value(nanoseconds: int) -> None:
    text = format_duration(nanoseconds)

    assert len(text) > LONGEST or parse_duration_ns(text) == nanoseconds


@given(
    st.text(max_size=80)
    | st.text(alphabet="0123456789. smhdwMyn\u00b5\u00a0+-:,", max_size=LONGEST)
    | st.lists(
        st.sampled_from(["1", "0.5", "18446744073709551615", " ", "h", "ns", "M", ".", "wk"])
    ).map("".join)
)
def test_any_text_is_read_or_refused_at_once(text: str) -> None:
    start = time.thread_time()
    with suppress(DurationError):
        assert parse_duration_ns(text) >= 0

    assert time.thread_time() - start < 0.05
