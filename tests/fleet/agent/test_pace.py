"""Delays between requests: spread out, longer after failures, never before the server's word."""

import random

import pytest

from fleet.agent.pace import Pace


class Chance(random.Random):
    """The least or the most of each range."""

    def __init__(self, *, most: bool) -> None:
        super().__init__(0)
        self._most = most

    def uniform(self, a: float, b: float) -> float:
        return b if self._most else a


def test_delays_double_up_to_two_minutes() -> None:
    pace = Pace(Chance(most=True))
    assert [pace.after_failure() for _ in range(9)] == [2, 4, 8, 16, 32, 64, 120, 120, 120]


def test_chance_halves_a_delay_at_most() -> None:
    pace = Pace(Chance(most=False))
    assert [pace.after_failure() for _ in range(7)] == [1, 2, 4, 8, 16, 32, 60]


def test_a_fleet_that_lost_its_server_comes_back_over_a_minute() -> None:
    delays = []
    for seed in range(2000):
        pace = Pace(random.Random(seed), failures=8)
        delays.append(pace.after_failure())
    assert (min(delays) >= 60, max(delays) <= 120) == (True, True)
    assert max(delays) - min(delays) > 58


def test_a_success_begins_anew() -> None:
    pace = Pace(Chance(most=True), failures=5)
    assert pace.after_success(30.0) == 30.0
    assert pace.after_failure() == 2


@pytest.mark.parametrize(
    ("asked", "taken"), [(0.0, 0.25), (-5.0, 0.25), (45.0, 45.0), (1e9, 3600.0)]
)
def test_the_servers_word_is_kept_within_bounds(asked: float, taken: float) -> None:
    assert Pace().after_success(asked) == taken


def test_retry_after_is_never_undercut() -> None:
    assert Pace(Chance(most=False)).after_failure(30.0) == 31.0


def test_after_a_refusal_the_agent_asks_every_few_minutes() -> None:
    assert Pace(Chance(most=False)).after_refusal() == 150.0
    assert Pace(Chance(most=True)).after_refusal() == 300.0


def test_many_failures_do_not_overflow() -> None:
    pace = Pace(Chance(most=True), failures=10**6)
    assert pace.after_failure() == 120.0
