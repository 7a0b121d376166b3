"""How long a failed run waits."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.rules.backoff import backoff, may_retry
from scheduler.rules.fire import LONGEST_DELAY, Retry


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [
        (0, 10),
        (1, 20),
        (4, 160),
        (12, 40_960),
        *((many, 43_200) for many in (13, 20, 63, 64, 200, 65_535)),
    ],
)
def test_the_delay_doubles_up_to_its_most(failures: int, seconds: int) -> None:  # T01
    assert backoff(Retry(50, 10, 43200), failures) == timedelta(seconds=seconds)


@pytest.mark.parametrize("failures", [0, 63, 64, 65535])
def test_no_least_delay_is_no_delay_for_ever(failures: int) -> None:  # X28
    assert backoff(Retry(3, 0, 100), failures) == timedelta(0)


@pytest.mark.parametrize("failures", [0, 1, 40])
def test_a_least_delay_over_the_most_is_the_most(failures: int) -> None:  # X29
    assert backoff(Retry(3, 100, 7), failures) == timedelta(seconds=7)


DELAYS = st.integers(0, LONGEST_DELAY)


@given(least=DELAYS, most=DELAYS, failures=st.integers(0, 10**9))
def test_a_delay_never_passes_its_most_and_never_shrinks(
    least: int, most: int, failures: int
) -> None:
    policy = Retry(3, least, most)

    assert backoff(policy, failures) <= timedelta(seconds=most)
    assert backoff(policy, failures) <= backoff(policy, failures + 1)


def test_times_counts_the_retries_after_the_first_run() -> None:  # X33
    assert [may_retry(Retry(2, 1, 1), failures) for failures in range(4)] == [
        True,
        True,
        False,
        False,
    ]
    assert may_retry(Retry(0, 1, 1), 0) is False
    assert may_retry(None, 0) is False
