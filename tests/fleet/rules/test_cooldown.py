"""How long a success counts."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.rules.cooldown import LEEWAY, LONG_AGO, Success, armed_from, is_armed, latest
from fleet.rules.when import Calendar, PerPc, PerTarget, When

T0 = datetime(2026, 6, 10, tzinfo=UTC)


def t(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


MINUTE = timedelta(seconds=60)


@pytest.mark.parametrize(
    ("when", "success", "now", "armed"),
    [
        pytest.param(PerPc(), None, 0, True, id="never succeeded"),
        pytest.param(PerPc(), Success(t(0)), 10**8, False, id="once is for ever"),
        pytest.param(PerPc(MINUTE), Success(t(100)), 159, False, id="inside the cooldown"),
        pytest.param(PerPc(MINUTE), Success(t(100)), 160, True, id="the bound counts"),
        pytest.param(PerPc(timedelta(0)), Success(t(100)), 100, True, id="no cooldown at all"),
        pytest.param(PerPc(MINUTE), Success(t(200)), 100, False, id="a little in the future"),
        pytest.param(PerTarget(MINUTE), Success(t(100)), 160, True, id="per target"),
        pytest.param(PerTarget(), Success(t(100)), 10**8, False, id="per target once"),
        pytest.param(Calendar("09:00"), Success(t(0)), 1, True, id="calendars do not ask"),
    ],
)
def test_a_success_counts_for_its_time(
    when: When, success: Success | None, now: int, armed: bool
) -> None:
    assert is_armed(when, success, version="1", now=t(now)) is armed


@pytest.mark.parametrize(
    ("succeeded_at", "current", "armed"), [("1.0", "1.0", False), ("1.0", "1.1", True)]
)
def test_once_per_version_asks_again_for_a_new_version_only(
    succeeded_at: str, current: str, armed: bool
) -> None:
    when = PerPc(per_version=True)
    assert is_armed(when, Success(t(0), succeeded_at), version=current, now=t(9)) is armed


def test_a_clock_that_was_once_in_2036_does_not_stop_a_job_for_ten_years() -> None:
    success = Success(datetime(2036, 1, 1, tzinfo=UTC))
    assert armed_from(PerPc(timedelta(hours=6)), success, version="", now=t(0)) == LONG_AGO


def test_a_cooldown_is_elapsed_time_not_wall_clock() -> None:
    """24 h after 09:00 on the day before a spring change is 10:00 local."""
    success = Success(datetime(2026, 3, 7, 14, tzinfo=UTC))  # 09:00 in New York
    now = datetime(2026, 3, 8, 15, tzinfo=UTC)
    wanted = armed_from(PerPc(timedelta(hours=24)), success, version="", now=now)
    assert wanted == datetime(2026, 3, 8, 14, tzinfo=UTC)  # 10:00 in New York


@pytest.mark.parametrize(
    ("ages", "newest"),
    [([], None), ([None], None), ([0, 150, 50], 150), ([None, 5], 5)],
)
def test_the_newest_success_counts_in_whatever_order(
    ages: list[int | None], newest: int | None
) -> None:
    found = latest(Success(t(age)) if age is not None else None for age in ages)
    assert found == (Success(t(newest)) if newest is not None else None)


@given(st.integers(0, 10**7), st.integers(-300, 10**7), st.integers(0, 10**6))
def test_the_wait_never_exceeds_the_cooldown(every: int, age: int, now: int) -> None:
    cooldown = timedelta(seconds=every)
    wanted = armed_from(PerPc(cooldown), Success(t(now - age)), version="", now=t(now))
    assert wanted is not None
    assert wanted - t(now) <= cooldown
    assert timedelta(seconds=300) == LEEWAY
