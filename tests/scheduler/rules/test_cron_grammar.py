"""What a cron expression may say, what is refused, and the sentence that says why."""

import time
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.rules.cron import CronError, parse
from scheduler.rules.cron.grammar import LONGEST

NOW = datetime(2026, 11, 30, 20, 42, tzinfo=UTC)
ITEMS = ("*", "*/2", "0", "59", "1-5", "MON", "L", "LW", "15W", "FRI#2", "5L", "?", "+MON")
FIVE = "minute hour day month weekday"


def refusal(text: object, fields: tuple[int, ...] = (5,)) -> str:
    with pytest.raises(CronError) as caught:
        parse(text, fields=fields)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "wrong", "right"),
    [
        ("61 * * * *", "minute 61 is outside 0-59", ""),
        ("* 24 * * *", "hour 24 is outside 0-23", ""),
        ("* * 0 * *", "day 0 is outside 1-31", ""),
        ("* * 32W * *", "day 32 is outside 1-31", ""),
        ("* * * * 8", "weekday 8 is outside 0-7", ""),
        ("0 0 * * 5-1", "weekday 5-1 runs backwards", "write it forwards, such as 5-6,0-1"),
        (
            "0 0 * * fri-mon",
            "weekday FRI-MON runs backwards",
            "write it forwards, such as FRI-SAT,SUN-MON",
        ),
        ("0 0 * * 7-1", "weekday 7-1 runs backwards", "write it forwards, such as 0-1"),
        ("* 22-2 * * *", "hour 22-2 runs backwards", "write it forwards, such as 22-23,0-2"),
        ("*/0 * * * *", "minute */0: a step is a number from 1, such as */5", ""),
        (
            "1,,2 * * * *",
            "the minute field has an empty item",
            "write a comma between two items only",
        ),
        ("-5 * * * *", "minute -5 is not understood", "numbers have no sign"),
        (
            "1.5 * * * *",
            "minute 1.5 is not understood",
            "write numbers from 0 to 59, such as 0, 0-5, */2 or 0-5/2",
        ),
        (
            "R * * * *",
            "minute R is not understood",
            "random times are not taken; write a number, and spread the start with jitter",
        ),
        (
            "H/15 * * * *",
            "minute H/15 is not understood",
            "random times are not taken; write a number, and spread the start with jitter",
        ),
        (
            "? * * * *",
            "minute ? is not understood",
            "? stands alone, in the day or the weekday field; write *",
        ),
        (
            "mon * * * *",
            "minute MON is not understood",
            "names stand in the month field (JAN-DEC) and the weekday field (SUN-SAT) alone",
        ),
        (
            "0 0 * * Monday",
            "weekday MONDAY is not understood",
            "write numbers (0-7) or names (SUN-SAT)",
        ),
        ("0 0 * * L5", "weekday L5 is not understood", "the last Friday of the month is 5L"),
        (
            "0 0 L-3 * *",
            "day L-3 is not understood",
            "L, LW and 15W stand alone in the day field, 5L and FRI#2 in the weekday field",
        ),
        ("0 0 * * 5#6", "weekday 5#6: after # stand 1 to 5 or L, such as FRI#2", ""),
        (
            "@reboot",
            "@reboot is an event, not a time",
            "use run on start-up, or a time such as @daily",
        ),
        (
            "@every 5m",
            "@every is not cron",
            "for every 5 minutes write */5 * * * *, or use an interval",
        ),
        (
            "@noon",
            "@noon is no nickname",
            "known are @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly",
        ),
        ("daily", "a nickname begins with @", "write @daily"),
        (
            "0\xa00 * * *",
            "it contains NO-BREAK SPACE (U+00A0), which looks like a space and comes from pasting",
            "type ordinary spaces",
        ),
        (
            "0 0 * * \u2217",
            "it contains ASTERISK OPERATOR (U+2217)",
            "write digits, letters, spaces and , - * / # ?",
        ),
        (
            "0 0 * * *\x00",
            "it contains an unprintable character (U+0000)",
            "write digits, letters, spaces and , - * / # ?",
        ),
        (
            "0 0 * * *\n1 0 * * *",
            "a cron expression is one line",
            "put a second one into a schedule of its own",
        ),
        ("", "the expression is empty", f"write five fields ({FIVE}), such as 30 2 * * 1-5"),
        ("* * *", f"5 fields are wanted ({FIVE}), such as 30 2 * * 1-5", "this has 3: * * *"),
        (
            "*/10 30 9 * * mon",
            "6 fields (seconds first) are not taken here",
            f"write five ({FIVE}), such as 30 9 * * mon",
        ),
        (
            "0 30 9 * * mon 2027",
            "7 fields (seconds first, year last) are not taken here",
            f"write five ({FIVE}), such as 30 9 * * mon",
        ),
    ],
)
def test_a_refusal_says_what_is_wrong_and_what_would_be_right(
    text: str, wrong: str, right: str
) -> None:
    assert refusal(text) == (f"{wrong}; {right}" if right else wrong)


def test_six_fields_with_a_question_mark_get_the_hint_about_quartz() -> None:
    assert refusal("0 0 12 ? * 2").endswith(
        "in Quartz 1 is Sunday and here 1 is Monday: name the weekdays, such as MON-FRI"
    )


@pytest.mark.parametrize("value", [None, 5, b"* * * * *", ["*"] * 5, {}, NOW])
def test_what_is_no_text_is_refused(value: object) -> None:
    assert refusal(value).startswith("a cron expression is a text such as 30 2 * * *, not ")


def test_an_unknown_day_rule_is_refused() -> None:
    with pytest.raises(CronError, match="the day rule is or, or and; not 'xor'"):
        parse("* * * * *", day_rule="xor")


def test_a_text_longer_than_the_limit_is_refused_before_it_is_read() -> None:
    assert parse("* * * * *".ljust(LONGEST)).text == "* * * * *".ljust(LONGEST)
    assert refusal("* * * * *".ljust(LONGEST + 1)) == (
        "a cron expression has at most 512 characters, this has 513"
    )


def test_more_than_32_ways_for_a_day_to_match_are_refused() -> None:
    nearest = ",".join(f"{day}W" for day in range(1, 32))

    assert len(parse(f"0 0 {nearest} * MON").walk.branches) == 32
    assert refusal(f"0 0 L,{nearest} * MON") == (
        "the day fields name 33 alternatives, at most 32 are taken; "
        "write ranges, or split it into two schedules"
    )


def test_the_text_is_kept_as_it_was_typed() -> None:
    assert parse(" 0 9 * * Mon-fri ").text == " 0 9 * * Mon-fri "


def test_a_parsed_expression_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        parse("* * * * *").text = "0 * * * *"  # type: ignore[misc]  # the point of the test


@given(
    st.text(max_size=600)
    | st.text(alphabet="0123456789*/-,#?+@ LWHRJANMOFI\t\n\xa0", max_size=120)
    | st.lists(
        st.sampled_from([*ITEMS]),
        min_size=4,
        max_size=8,
    ).map(" ".join)
)
def test_any_text_is_read_or_refused_at_once(text: str) -> None:
    start = time.thread_time()
    with suppress(CronError):
        parse(text, fields=(5, 6, 7))

    assert time.thread_time() - start < 0.05


@given(
    days=st.lists(st.integers(1, 31), min_size=1, max_size=30, unique=True),
    weekdays=st.lists(
        st.tuples(st.integers(0, 7), st.integers(1, 5)), min_size=1, max_size=30, unique=True
    ),
    rule=st.sampled_from(["or", "and"]),
)
def test_the_costliest_expressions_are_read_in_bounded_time(
    days: list[int], weekdays: list[tuple[int, int]], rule: str
) -> None:
    text = "* * {} * {}".format(
        ",".join(f"{day}W" for day in days), ",".join(f"{day}#{nth}" for day, nth in weekdays)
    )

    start = time.thread_time()
    with suppress(CronError):
        parse(text, day_rule=rule)

    assert time.thread_time() - start < 0.05
