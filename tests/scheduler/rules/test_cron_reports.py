"""What went wrong in neighbouring projects around changes of the clock, and what is right here.

The ids name the row of the collected reports; the contested table is what implementations differ
on, with the answer that was chosen.
"""

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest

from scheduler.rules.cron import CronError, parse, parse_for_save
from scheduler.rules.zones import zone

NEW_YORK = zone("America/New_York")
HOUR = timedelta(hours=1)


def local(text: str, name: str) -> datetime:
    """Return the wall clock `text` (first pass) in a zone."""
    return datetime.fromisoformat(text).replace(tzinfo=zone(name))


def fires(text: str, name: str, after: str, count: int, **reading: object) -> list[str]:
    """Return the next fires as local texts with their offsets."""
    cron = parse(text, **reading)  # type: ignore[arg-type]  # keywords are passed on as given
    found = islice(cron.fires(local(after, name), zone(name)), count)
    return [f"{fire.astimezone(zone(name)):%Y-%m-%d %H:%M:%S%z}"[:-2] for fire in found]


def test_1_a_weekly_noon_runs_once_across_the_autumn_change() -> None:
    assert fires("0 12 * * 1", "America/New_York", "2026-10-27 00:00", 2) == [
        "2026-11-02 12:00:00-05",
        "2026-11-09 12:00:00-05",
    ]


def test_2_a_minutely_schedule_has_120_runs_in_the_repeated_hour() -> None:
    paris = zone("Europe/Paris")
    start, end = datetime(2026, 10, 25, 0, tzinfo=UTC), datetime(2026, 10, 25, 2, tzinfo=UTC)

    found = list(islice(parse("* * * * *").fires(start - timedelta(minutes=1), paris), 120))

    assert found == [start + timedelta(minutes=minute) for minute in range(120)]
    assert found[-1] + timedelta(minutes=1) == end


def test_3_a_zoned_schedule_keeps_its_hour_on_the_spring_day() -> None:
    assert fires("4 16 * * *", "America/New_York", "2025-03-09 00:00", 1) == [
        "2025-03-09 16:04:00-04"
    ]


@pytest.mark.parametrize(
    ("after", "fire"),
    [
        ("2026-03-08 00:00", "2026-03-08 03:00:00-04"),
        ("2026-03-09 00:00", "2026-03-09 02:30:00-04"),
        ("2026-11-01 00:00", "2026-11-01 02:30:00-05"),
    ],
)
def test_5_a_time_in_the_changed_hour_runs_once_on_both_days(after: str, fire: str) -> None:
    assert fires("30 2 * * *", "America/New_York", after, 1) == [fire]


def test_5_a_repeated_time_runs_at_the_first_pass_alone() -> None:
    assert fires("30 1 * * *", "America/New_York", "2026-11-01 00:00", 2) == [
        "2026-11-01 01:30:00-04",
        "2026-11-02 01:30:00-05",
    ]


def test_6_a_time_inside_the_gap_is_never_far_away() -> None:
    after = local("2026-03-08 01:30", "America/New_York").astimezone(UTC)

    fire = parse("30 2 * * *").next_after(after, NEW_YORK)

    assert fire == after + timedelta(minutes=30)


def test_8_a_week_with_a_short_day_is_no_week_late() -> None:
    assert fires("0 12 * * 0", "Europe/Berlin", "2022-03-24 00:00", 1) == ["2022-03-27 12:00:00+02"]


@pytest.mark.parametrize("text", ["* * * * *", "30 1 * * *", "*/20 1 * * *", "0 0 1 * MON"])
def test_10_the_next_fire_is_always_later_than_the_time_asked_for(text: str) -> None:
    cron, end = parse(text), datetime(2026, 11, 1, 8, tzinfo=UTC)
    moment = datetime(2026, 11, 1, 3, tzinfo=UTC)
    while moment < end:
        fire = cron.next_after(moment, NEW_YORK)
        assert fire is not None
        assert fire > moment
        moment += timedelta(minutes=7, seconds=13)


def test_12_a_zone_behind_that_of_the_server_fires_once_a_match() -> None:
    asked_in_vilnius = local("2026-06-01 12:00", "Europe/Vilnius")
    cron, tz = parse("0 9 * * *"), zone("America/Los_Angeles")

    assert list(islice(cron.fires(asked_in_vilnius, tz), 2)) == [
        datetime(2026, 6, 1, 16, tzinfo=UTC),
        datetime(2026, 6, 2, 16, tzinfo=UTC),
    ]


def test_13_a_date_that_never_comes_is_an_answer_and_not_a_crash() -> None:
    now = datetime(2026, 11, 30, tzinfo=UTC)

    assert parse("* * 31 2 *").next_after(now, NEW_YORK) is None
    with pytest.raises(
        CronError, match="never matches, in no year: there is no day 31 in February"
    ):
        parse_for_save("* * 31 2 *", now=now, tz=NEW_YORK)


def test_15_a_star_in_the_minutes_is_told_before_it_is_saved() -> None:
    cron, now = parse("* 4 * * *"), datetime(2026, 11, 30, tzinfo=UTC)

    assert cron.describe() == "every minute from 04:00 to 04:59 every day"
    assert cron.warnings(NEW_YORK, now) == (
        (
            "60 runs a day, 04:00\N{EN DASH}04:59: every minute of the hour; "
            "for one run an hour write 0 as the minute"
        ),
    )


def test_15_six_fields_are_refused_with_an_example() -> None:
    with pytest.raises(CronError, match=r"write five .*, such as 30 4 [*] [*] [*]"):
        parse("0 30 4 * * *")


@pytest.mark.parametrize(
    ("text", "name", "after", "expected"),
    [
        pytest.param(
            "5/15 * * * *",
            "UTC",
            "2026-01-01 00:00",
            ["2026-01-01 00:05:00+00", "2026-01-01 00:20:00+00"],
            id="a start with a step runs to the maximum",
        ),
        pytest.param(
            "0 0 * * 1/2",
            "UTC",
            "2026-01-01 00:00",
            ["2026-01-02 00:00:00+00", "2026-01-04 00:00:00+00", "2026-01-05 00:00:00+00"],
            id="of weekdays to 7, Sunday",
        ),
        pytest.param(
            "0 0 */31 * MON",
            "UTC",
            "2026-01-01 00:00",
            ["2026-01-05 00:00:00+00", "2026-01-12 00:00:00+00"],
            id="a star with a step restricts: either matches",
        ),
        pytest.param(
            "0 1-5 * * *",
            "America/New_York",
            "2026-11-01 00:30",
            ["2026-11-01 01:00:00-04", "2026-11-01 02:00:00-05"],
            id="hours in a repeated hour run once",
        ),
        pytest.param(
            "0 0-23/2 * * *",
            "America/New_York",
            "2026-03-08 00:30",
            ["2026-03-08 03:00:00-04", "2026-03-08 04:00:00-04"],
            id="hours in the missing hour run once at its end",
        ),
        pytest.param(
            "0 1 * * *",
            "America/New_York",
            "2026-03-08 00:30",
            ["2026-03-08 01:00:00-05", "2026-03-09 01:00:00-04"],
            id="the hour before a gap is no second run",
        ),
        pytest.param(
            "*/30 * * * *",
            "Australia/Lord_Howe",
            "2026-04-05 01:00",
            ["2026-04-05 01:30:00+11", "2026-04-05 01:30:00+10", "2026-04-05 02:00:00+10"],
            id="half an hour can come twice",
        ),
        pytest.param(
            "0 0 * * 0",
            "America/Havana",
            "2026-03-03 00:00",
            ["2026-03-08 01:00:00-04", "2026-03-15 00:00:00-04"],
            id="a missing midnight keeps its day",
        ),
        pytest.param(
            "0 0 30 * *",
            "Pacific/Apia",
            "2011-12-29 09:00",
            ["2012-01-30 00:00:00+14"],
            id="a day that is left out is not made up for",
        ),
        pytest.param(
            "0 0 * * SUN-SUN",
            "UTC",
            "2026-01-01 00:00",
            ["2026-01-04 00:00:00+00", "2026-01-11 00:00:00+00"],
            id="SUN-SUN is Sunday",
        ),
        pytest.param(
            "0 0 * * MON-SUN",
            "UTC",
            "2026-01-03 12:00",
            ["2026-01-04 00:00:00+00", "2026-01-05 00:00:00+00"],
            id="MON-SUN is the week",
        ),
        pytest.param(
            "0 0 31W * *",
            "UTC",
            "2026-04-01 00:00",
            ["2026-05-29 00:00:00+00"],
            id="31W leaves out the short months",
        ),
    ],
)
def test_where_implementations_differ_this_is_the_answer(
    text: str, name: str, after: str, expected: list[str]
) -> None:
    assert fires(text, name, after, len(expected)) == expected


def test_a_start_inside_the_second_pass_waits_for_the_next_day() -> None:
    second_pass = local("2026-11-01 01:10", "America/New_York").replace(fold=1)

    assert parse("30 1 * * *").next_after(second_pass, NEW_YORK) == datetime(
        2026, 11, 2, 6, 30, tzinfo=UTC
    )


def test_several_missed_times_of_one_gap_are_one_run() -> None:
    assert fires("0,15,30 2,3 * * *", "America/New_York", "2026-03-08 00:30", 3) == [
        "2026-03-08 03:00:00-04",
        "2026-03-08 03:15:00-04",
        "2026-03-08 03:30:00-04",
    ]


def test_an_instant_without_a_zone_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="needs a zone"):
        parse("* * * * *").next_after(datetime.fromisoformat("2026-01-01"), NEW_YORK)


def test_beyond_the_end_of_the_calendar_nothing_fires() -> None:
    assert parse("0 0 1 1 *").next_after(datetime.max.replace(tzinfo=UTC), NEW_YORK) is None


def test_before_the_start_of_the_calendar_the_first_fire_is_in_1900() -> None:
    fire = parse("0 0 1 * *").next_after(datetime.min.replace(tzinfo=UTC), zone("UTC"))

    assert fire == datetime(1900, 2, 1, tzinfo=UTC)


def test_asking_leaves_nothing_behind_so_that_threads_can_share_an_expression() -> None:
    cron = parse("30 2 * * MON#1")
    before = [vars(branch.walker).copy() for branch in cron.walk.branches]

    cron.next_after(datetime(2026, 1, 1, tzinfo=UTC), NEW_YORK)

    assert [vars(branch.walker) for branch in cron.walk.branches] == before
