"""Which missed occurrences run: against counting them one by one."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.rules.misfire import (
    MOST_CATCH_UPS,
    MOST_COUNTED,
    Misfire,
    NextAfter,
    RunIt,
    SkipIt,
    decide,
    grace_of,
    last_occurrences,
)

START = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def every(period: timedelta, *, until: datetime | None = None) -> NextAfter:
    """A recurrence from START on."""

    def next_after(after: datetime) -> datetime | None:
        following = START + max(0, (after - START) // period + 1) * period
        return None if until is not None and following > until else following

    return next_after


@pytest.mark.parametrize(
    ("period", "grace"),
    [
        (timedelta(minutes=1), timedelta(seconds=90)),
        (timedelta(minutes=5), timedelta(seconds=150)),
        (HOUR, timedelta(minutes=30)),
        (timedelta(days=1), HOUR),
    ],
)
def test_half_the_interval_is_on_time_within_bounds(period: timedelta, grace: timedelta) -> None:
    assert grace_of(START, every(period)) == grace


def test_what_never_recurs_again_has_ninety_seconds() -> None:
    assert grace_of(START, lambda after: None) == timedelta(seconds=90)


@pytest.mark.parametrize("policy", list(Misfire))
def test_on_time_is_on_time_to_the_last_instant(policy: Misfire) -> None:
    late = timedelta(minutes=30)

    assert decide(policy, START, every(HOUR), now=START + late) == RunIt(START)


def test_beyond_that_each_policy_has_its_answer() -> None:
    now = START + timedelta(hours=3, minutes=31)

    assert decide(Misfire.SKIP, START, every(HOUR), now=now) == SkipIt(START + 4 * HOUR, missed=4)
    assert decide(Misfire.ONCE, START, every(HOUR), now=now) == RunIt(START + 3 * HOUR, missed=3)
    assert decide(Misfire.ALL, START, every(HOUR), now=now) == RunIt(START, missed=0)


def test_skip_runs_the_newest_if_that_one_is_on_time() -> None:
    now = START + timedelta(hours=3, minutes=29)

    assert decide(Misfire.SKIP, START, every(HOUR), now=now) == RunIt(START + 3 * HOUR, missed=3)


def test_skip_of_the_last_occurrence_ever_has_no_next() -> None:
    ended = every(HOUR, until=START)

    assert decide(Misfire.SKIP, START, ended, now=START + HOUR) == SkipIt(None, missed=1)


def test_all_keeps_the_newest_hundred() -> None:
    now = START + timedelta(minutes=249)
    minutely = every(timedelta(minutes=1))

    answer = decide(Misfire.ALL, START, minutely, now=now)

    assert answer == RunIt(START + timedelta(minutes=150), missed=150)


def test_years_of_minutes_are_counted_to_a_thousand() -> None:
    now = START + timedelta(days=4000)
    minutely = every(timedelta(minutes=1))

    assert decide(Misfire.ONCE, START, minutely, now=now) == RunIt(now, missed=MOST_COUNTED - 1)


@given(
    minutes=st.integers(1, 3000),
    late=st.integers(0, 600_000),
    policy=st.sampled_from(list(Misfire)),
)
def test_every_answer_agrees_with_counting(minutes: int, late: int, policy: Misfire) -> None:
    period = timedelta(minutes=minutes)
    now = START + timedelta(seconds=late)
    count = late // (minutes * 60) + 1
    newest = START + (count - 1) * period

    answer = decide(policy, START, every(period), now=now)

    match answer:
        case RunIt(occurrence_at=at, missed=missed):
            assert at <= now
            if policy is Misfire.ALL and missed:
                assert at == newest - (MOST_CATCH_UPS - 1) * period
            elif policy is not Misfire.ALL and missed:
                assert at == newest
        case SkipIt(next_at=at):
            assert policy is Misfire.SKIP
            assert at == newest + period
            assert now - newest > grace_of(START, every(period))


@given(minutes=st.integers(1, 500), late=st.integers(0, 100_000), most=st.integers(1, 150))
def test_the_last_occurrences_are_the_last(minutes: int, late: int, most: int) -> None:
    period = timedelta(minutes=minutes)
    now = START + timedelta(seconds=late)
    every_one = [START + number * period for number in range(late // (minutes * 60) + 1)]

    assert last_occurrences(START, every(period), now=now, most=most) == every_one[-most:]
