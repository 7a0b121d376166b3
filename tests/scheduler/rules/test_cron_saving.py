"""What is read but not saved, and what a person is told who saves an expression."""

from datetime import UTC, datetime

import pytest

from scheduler.rules.cron import CronError, parse, parse_for_save, require_fires
from scheduler.rules.zones import zone

NOW = datetime(2026, 11, 30, 20, 42, tzinfo=UTC)
BUDAPEST = zone("Europe/Budapest")
NEW_YORK = zone("America/New_York")


@pytest.mark.parametrize(
    ("text", "proposal"),
    [
        ("5/15 * * * *", "minute 5/15 does not say where it ends; write 5-59/15"),
        ("0 6/6 * * *", "hour 6/6 does not say where it ends; write 6-23/6"),
        ("0 0 * * MON/2", "weekday MON/2 does not say where it ends; write MON-7/2"),
        ("0 0 1 DEC/3 *", "month DEC/3 does not say where it ends; write DEC-12/3"),
    ],
)
def test_a_start_with_a_step_is_read_but_not_saved(text: str, proposal: str) -> None:
    assert parse(text).next_after(NOW, BUDAPEST) is not None

    with pytest.raises(CronError) as caught:
        parse_for_save(text, now=NOW, tz=BUDAPEST)
    assert str(caught.value) == proposal


def test_quartz_weekdays_are_read_but_not_saved() -> None:
    assert parse("0 0 12 ? * 2", fields=(6,)).next_after(NOW, BUDAPEST) is not None
    assert parse_for_save("0 0 12 ? * TUE", now=NOW, tz=BUDAPEST, fields=(6,)).text

    with pytest.raises(CronError, match=r"weekday 2 beside [?]: in Quartz 1 is Sunday"):
        parse_for_save("0 0 12 ? * 2", now=NOW, tz=BUDAPEST, fields=(6,))


@pytest.mark.parametrize(
    ("text", "fields", "sentence"),
    [
        ("0 0 30 2 *", (5,), "it never matches, in no year: there is no day 30 in February"),
        ("0 0 31 6 *", (5,), "it never matches, in no year: there is no day 31 in June"),
        ("0 0 31W 4 *", (5,), "it never matches, in no year: there is no day 31W in April"),
        (
            "0 0 8-31 * +MON#1",
            (5,),
            "it never matches, in no year: no such date fits both the day and the weekday field",
        ),
        ("0 0 0 1 1 * 2020", (7,), "it can never run: its years are past; the last is 2020"),
        ("0 0 0 29 2 * 2027", (7,), "it can never run: there is no such date left in its years"),
    ],
)
def test_what_never_fires_is_read_but_not_saved(
    text: str, fields: tuple[int, ...], sentence: str
) -> None:
    assert parse(text, fields=fields).next_after(NOW, BUDAPEST) is None

    with pytest.raises(CronError) as caught:
        parse_for_save(text, now=NOW, tz=BUDAPEST, fields=fields)
    assert str(caught.value) == sentence


def test_an_expression_that_fires_tells_its_first_fire() -> None:
    cron = parse_for_save("0 9 * * 1-5", now=NOW, tz=BUDAPEST)

    assert require_fires(cron, NOW, BUDAPEST) == datetime(2026, 12, 1, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "warnings"),
    [
        ("0 9 * * 1-5", ()),
        ("* * * * *", ()),
        (
            "0 0 1 * MON",
            (
                (
                    "day and weekday are both set: it runs when EITHER matches; "
                    "for both write + before the weekday: +MON"
                ),
            ),
        ),
        ("0 0 1 * +MON", ("day and weekday are both set: it runs only when BOTH match",)),
        (
            "*/90 * * * *",
            (
                (
                    "minute */90: the step is larger than the field, "
                    "so that it means minute 0 alone, once an hour"
                ),
            ),
        ),
        (
            "0 10-12/5 * * *",
            (
                (
                    "hour 10-12/5: the step is larger than the range, "
                    "so that it means hour 10 alone, once a day"
                ),
            ),
        ),
        (
            "30 2 * * *",
            ("02:30 does not exist on 2027-03-14 in America/New_York: it runs at 03:00 that day",),
        ),
        (
            "15 1 * * *",
            ("01:15 comes twice on 2027-11-07 in America/New_York: it runs the first time only",),
        ),
    ],
)
def test_what_may_surprise_is_said_and_nothing_else(text: str, warnings: tuple[str, ...]) -> None:
    assert parse(text).warnings(NEW_YORK, NOW) == warnings


def test_a_zone_without_summer_time_warns_of_no_change() -> None:
    assert parse("30 2 * * *").warnings(zone("Asia/Tokyo"), NOW) == ()


def test_more_than_one_run_a_minute_is_said() -> None:
    cron = parse("*/10 * * * * *", fields=(6,))

    assert cron.warnings(BUDAPEST, NOW) == ("it runs more often than once a minute: 6 times",)
    assert cron.per_day(BUDAPEST, NOW) == 8640


@pytest.mark.parametrize(
    ("text", "count"),
    [("* * * * *", 1440), ("*/20 * * * *", 72), ("0 9,17 * * *", 2), ("0 0 30 2 *", 0)],
)
def test_the_runs_of_a_day_are_counted(text: str, count: int) -> None:
    assert parse(text).per_day(BUDAPEST, NOW) == count


@pytest.mark.parametrize(
    ("day", "text", "count"),
    [
        ("2027-03-14", "* * * * *", 23 * 60),
        ("2027-11-07", "* * * * *", 25 * 60),
        ("2027-11-07", "30 1 * * *", 1),
        ("2027-03-14", "30 2 * * *", 1),
        ("2027-03-14", "0,20,40 2,3 * * *", 3),
    ],
)
def test_the_runs_of_a_day_with_a_change_are_counted(day: str, text: str, count: int) -> None:
    midnight = datetime.fromisoformat(day).replace(tzinfo=NEW_YORK).astimezone(UTC)

    assert parse(text).per_day(NEW_YORK, midnight) == count


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("* * * * *", "every minute"),
        ("*/5 * * * *", "every 5 minutes"),
        ("*/40 * * * *", "at minutes 0 and 40 of every hour"),
        ("0 * * * *", "every hour"),
        ("30 * * * *", "at minute 30 of every hour"),
        ("0 */2 * * *", "every 2 hours"),
        ("5 */2 * * *", "at minute 5 of every 2nd hour"),
        ("* 4 * * *", "every minute from 04:00 to 04:59 every day"),
        ("*/15 9-17 * * 1-5", "every 15 minutes from 09:00 to 17:59 on Monday to Friday"),
        ("0 8-18 * * *", "at minute 0 of hours 8 to 18 every day"),
        ("30 2 * * *", "at 02:30 every day"),
        ("0 9,17 * * *", "at 09:00 and 17:00 every day"),
        ("0 9 * * 6,0", "at 09:00 on Saturday and Sunday"),
        ("0 9 * * FRI#2", "at 09:00 on the second Friday of the month"),
        ("0 9 * * 5L,MON", "at 09:00 on Monday and the last Friday of the month"),
        ("0 9 1,15,L * *", "at 09:00 on days 1 and 15 and the last day of the month"),
        ("0 9 LW * *", "at 09:00 on the last Monday-to-Friday day of the month"),
        ("0 9 15W * *", "at 09:00 on the Monday-to-Friday day nearest to day 15 of the month"),
        ("0 9 1 * MON", "at 09:00 on day 1 of the month and on Monday, whichever comes"),
        ("0 9 1 * +MON", "at 09:00 on day 1 of the month, if it is also Monday"),
        ("0 9 * JAN-MAR *", "at 09:00 every day in January to March"),
        ("@yearly", "at 00:00 on day 1 of the month in January"),
        ("30 * * * * *", "at second 30 of every minute"),
        ("*/10 * * * * *", "every 10 seconds"),
        ("* * * * * *", "every second"),
        ("*/20 30 1 * * *", "every 20 seconds, at minute 30 of hour 1 every day"),
        ("5 4 3 2 1 * 2027", "at 03:04:05 on day 2 of the month in January in 2027"),
    ],
)
def test_an_expression_is_told_in_plain_words(text: str, words: str) -> None:
    assert parse(text, fields=(5, 6, 7)).describe() == words


def test_the_rule_for_changes_of_the_clock_is_told_beside_the_next_runs() -> None:
    assert parse("30 2 * * *").rule() == (
        "Fixed times run once a day: a time that the clock leaves out runs at the end of the gap, "
        "a time that comes twice runs the first time."
    )
    assert parse("*/30 * * * *").rule() == (
        "It follows the clock: nothing runs in an hour that is left out, "
        "and an hour that comes twice runs twice."
    )
