"""What holds for any expression, zone and instant."""

import os
import subprocess
import sys
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from scheduler.rules.cron import Cron, parse
from scheduler.rules.zones import first_change, instants, offset_at, zone, zone_names
from tests.scheduler.rules.cron_oracle import matches, next_match

MINUTE = timedelta(minutes=1)
ZONES = (
    *("UTC", "Europe/Budapest", "America/New_York", "America/Havana", "Africa/Cairo"),
    *("Australia/Lord_Howe", "Pacific/Chatham", "Antarctica/Troll", "Africa/Casablanca"),
    *("America/Sao_Paulo", "Europe/Dublin", "Asia/Kathmandu", "America/St_Johns"),
)


def item(low: int, high: int) -> st.SearchStrategy[str]:
    """Return an item of a field: star, number, range, with or without a step."""
    number = st.integers(low, high)
    pair = st.tuples(number, number).map(sorted)
    step = st.integers(1, high)
    return st.one_of(
        st.just("*"),
        number.map(str),
        step.map(lambda n: f"*/{n}"),
        pair.map(lambda p: f"{p[0]}-{p[1]}"),
        st.tuples(pair, step).map(lambda p: f"{p[0][0]}-{p[0][1]}/{p[1]}"),
    )


def field(low: int, high: int, *special: str) -> st.SearchStrategy[str]:
    """Return a field of one to three items."""
    one = item(low, high)
    if special:
        one = one | st.sampled_from(special)
    return st.lists(one, min_size=1, max_size=3).map(",".join)


EXPRESSIONS = st.builds(
    " ".join,
    st.tuples(
        field(0, 59),
        field(0, 23),
        st.just("*") | field(1, 31, "L", "LW", "1W", "15W", "31W"),
        st.just("*") | field(1, 12),
        st.just("*") | field(0, 7, "5L", "0#1", "MON#2", "SAT#L", "3#5"),
    ),
)
CRONS = st.builds(parse, EXPRESSIONS, day_rule=st.sampled_from(["or", "and"]))
FIXED = st.builds(
    lambda minute, hour: parse(f"{minute} {hour} * * *"), st.integers(0, 59), st.integers(0, 23)
)
INSTANTS = st.integers(946_684_800, 2_208_988_800).map(
    lambda at: datetime.fromtimestamp(at, UTC)
)  # 2000-2040


@st.composite
def changes(draw: st.DrawFn) -> tuple[ZoneInfo, datetime]:
    """Return a zone of the whole list and an instant of a change of its clock."""
    tz = zone(draw(st.sampled_from(sorted(zone_names()))))
    start = draw(INSTANTS)
    change = first_change(tz, start, start + timedelta(days=800))
    assume(change is not None)
    assert change is not None
    return tz, change


def nominal_day(cron: Cron, fire: datetime, tz: ZoneInfo) -> date:
    """Return the local day a fire belongs to: the day before, where a gap reaches over midnight."""
    clock = fire.astimezone(tz).replace(tzinfo=None)
    if matches(cron, clock):
        return clock.date()
    (hour,), (minute,) = cron.fields.hours, cron.fields.minutes
    missed = clock.replace(hour=hour, minute=minute)
    return clock.date() if not instants(missed, tz) else clock.date() - timedelta(days=1)


@given(CRONS, st.sampled_from(ZONES), INSTANTS)
def test_the_next_fire_is_later_and_shows_a_match(cron: Cron, name: str, after: datetime) -> None:
    fire = cron.next_after(after, zone(name))

    if fire is not None:
        assert fire > after
        assert fire.tzinfo is UTC
        clock = fire.astimezone(zone(name)).replace(tzinfo=None)
        before = offset_at(fire - timedelta(seconds=1), zone(name))
        assert matches(cron, clock) or before < offset_at(fire, zone(name))


@given(CRONS, INSTANTS)
@example(parse("0 0 * 2 MON#5"), datetime(2072, 3, 1, tzinfo=UTC))
def test_in_utc_the_next_fire_is_the_next_match_of_a_naive_search(
    cron: Cron, after: datetime
) -> None:
    fire = cron.next_after(after, UTC)

    expected = next_match(cron, after.replace(tzinfo=None))
    assert fire == (None if expected is None else expected.replace(tzinfo=UTC))


@given(CRONS, changes(), st.integers(-300, 300), st.floats(0, 1))
def test_asking_at_any_instant_between_two_fires_gives_the_same_fire(
    cron: Cron, change: tuple[ZoneInfo, datetime], minutes: int, part: float
) -> None:
    tz, moment = change
    after = moment + minutes * MINUTE
    fire = cron.next_after(after, tz)
    if fire is None:
        assert cron.next_after(after + timedelta(days=1), tz) is None
        return

    between = after + (fire - after) * part
    if between < fire:
        assert cron.next_after(between, tz) == fire


@given(FIXED, changes())
def test_a_fixed_time_runs_once_on_each_local_day_around_a_change(
    cron: Cron, change: tuple[ZoneInfo, datetime]
) -> None:
    tz, moment = change
    end = moment + timedelta(days=4)
    jump = abs(offset_at(moment, tz) - offset_at(moment - timedelta(seconds=1), tz))
    assume(jump <= timedelta(hours=3))

    days = []
    for fire in cron.fires(moment - timedelta(days=3), tz):
        if fire > end:
            break
        days.append(nominal_day(cron, fire, tz))

    assert days == [days[0] + timedelta(days=number) for number in range(len(days))]
    assert len(days) >= 6


@given(changes())
def test_what_follows_the_clock_runs_at_every_instant_that_shows_a_match(
    change: tuple[ZoneInfo, datetime],
) -> None:
    tz, moment = change
    cron = parse("*/15 * * * *")
    start, end = moment - timedelta(hours=4), moment + timedelta(hours=4)

    found = []
    for fire in cron.fires(start, tz):
        if fire > end:
            break
        found.append(fire)

    clock = (start.astimezone(tz) - timedelta(days=1)).replace(tzinfo=None, minute=0, second=0)
    expected = {
        instant
        for quarter in range(4 * 24 * 3)
        for instant in instants(clock.replace(microsecond=0, fold=0) + quarter * 15 * MINUTE, tz)
        if start < instant <= end
    }
    assert found == sorted(expected)


@given(CRONS, st.sampled_from(ZONES), INSTANTS)
def test_the_search_is_bounded_in_time(cron: Cron, name: str, after: datetime) -> None:
    cron.next_after(after, zone(name))  # the zone's changes are looked up once
    start = time.thread_time()
    cron.next_after(after, zone(name))

    assert time.thread_time() - start < 0.5


@pytest.mark.parametrize("process_zone", ["UTC", "America/New_York", "Pacific/Apia"])
def test_the_zone_of_the_process_changes_nothing(process_zone: str) -> None:
    code = (
        "from datetime import datetime, UTC\n"
        "from scheduler.rules.cron import parse\n"
        "from scheduler.rules.zones import zone\n"
        "after = datetime(2026, 3, 28, tzinfo=UTC)\n"
        "for text in ('30 2 * * *', '*/20 2 * * *', '0 0 LW * *'):\n"
        "    print(parse(text).next_after(after, zone('Europe/Budapest')))\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[3],
        env={**os.environ, "TZ": process_zone},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert done.stdout.split("\n")[:3] == [
        "2026-03-28 01:30:00+00:00",
        "2026-03-28 01:00:00+00:00",
        "2026-03-30 22:00:00+00:00",
    ]
