"""A machine that keeps failing is asked less and less often."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.rules.failing import backs_off_until, pause_after

NOW = datetime(2026, 6, 10, tzinfo=UTC)
TWO_MINUTES = timedelta(minutes=2)


@pytest.mark.parametrize(
    ("failures", "minutes"),
    [(1, 2), (2, 4), (3, 8), (4, 16), (5, 32), (6, 60), (7, 60), (1_000_000_000, 60)],
)
def test_the_pause_doubles_up_to_an_hour(failures: int, minutes: int) -> None:
    assert pause_after(failures, TWO_MINUTES) == timedelta(minutes=minutes)


@pytest.mark.parametrize("failures", [1, 2, 9])
def test_a_window_longer_than_an_hour_is_the_pause(failures: int) -> None:
    window = timedelta(seconds=9390)
    assert pause_after(failures, window) == window


def test_the_pause_counts_from_the_failure() -> None:
    assert backs_off_until(2, NOW, window=TWO_MINUTES) == NOW + timedelta(minutes=4)


@pytest.mark.parametrize(("failures", "failed_at"), [(0, NOW), (3, None)])
def test_who_did_not_fail_last_does_not_pause(failures: int, failed_at: datetime | None) -> None:
    assert backs_off_until(failures, failed_at, window=TWO_MINUTES) is None


@given(st.integers(1, 200), st.timedeltas(timedelta(seconds=90), timedelta(days=3)))
def test_the_pause_is_the_formula(failures: int, window: timedelta) -> None:
    hour = timedelta(hours=1)
    # Six doublings of the shortest window exceed the hour.
    doubled = min(window * 2 ** min(failures - 1, 6), hour)
    assert pause_after(failures, window) == max(window, doubled)
