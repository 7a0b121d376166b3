"""The pause after a dispatch."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.rules.retries import RetryPolicy
from fleet.rules.suppression import muted_until, suppression_window
from scheduler.rules.durations import DurationError, parse_duration

T0 = datetime(2026, 6, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def t(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def read(text: str | None) -> timedelta | None:
    """A stored duration; what cannot be read counts as not given."""
    try:
        return parse_duration(text) if text is not None else None
    except DurationError:
        return None


def retry(max_retries: int, backoff: str) -> RetryPolicy | None:
    pause = read(backoff)
    return RetryPolicy(max_retries, pause) if pause is not None else None


@pytest.mark.parametrize(
    ("jitter", "timeout", "policy", "window"),
    [
        (None, "30s", None, 120),
        (None, "30s", (3, "1m"), 390),
        (None, "5m", (10, "10m"), 9390),
        (None, "1h", None, 1800),
        (None, "0s", None, 90),
        ("5m", "30s", None, 420),
        (None, "28m30s", None, 1800),
        (None, "28m31s", None, 1800),
        ("1h", "1m", None, 1800),
        (None, "1h", (1, "30s"), 5430),
        ("10m", "1m", (2, "1s"), 872),
        ("junk", "30s", None, 120),
        (None, "junk", None, 90),
        (None, "30s", (3, "junk"), 120),
    ],
    ids=[f"14.2#{number}" for number in range(1, 15)],
)
def test_the_window_covers_jitter_run_margin_and_retries(
    jitter: str | None, timeout: str, policy: tuple[int, str] | None, window: int
) -> None:
    found = suppression_window(read(jitter), read(timeout), retry(*policy) if policy else None)
    assert found == timedelta(seconds=window)


def test_a_window_beyond_an_hour_is_kept_whole() -> None:
    """The original lost its marks after an hour and fired again while the PC was retrying."""
    window = suppression_window(None, timedelta(minutes=5), RetryPolicy(10, 10 * MINUTE))
    assert muted_until(t(0), window=window, now=t(9389)) == t(9390)


@pytest.mark.parametrize(
    ("dispatched", "now", "muted"),
    [
        pytest.param(100, 110, True, id="13.2 muted"),
        pytest.param(100, 159, True, id="13.2 the last second"),
        pytest.param(100, 160, False, id="13.2 the end is no longer muted"),
        pytest.param(None, 110, False, id="13.2 no mark"),
        pytest.param(200, 100, True, id="13.2 a little in the future"),
        pytest.param(100_000, 100, False, id="13.2 far in the future"),
    ],
)
def test_a_dispatch_mutes_for_its_window(dispatched: int | None, now: int, muted: bool) -> None:
    mark = t(dispatched) if dispatched is not None else None
    assert (muted_until(mark, window=MINUTE, now=t(now)) is not None) is muted


DURATIONS = st.timedeltas(timedelta(0), timedelta.max)


@given(st.none() | DURATIONS, st.none() | DURATIONS)
def test_without_retries_the_window_stays_between_its_bounds(
    jitter: timedelta | None, timeout: timedelta | None
) -> None:
    window = suppression_window(jitter, timeout, None)
    assert timedelta(seconds=90) <= window <= timedelta(minutes=30)
