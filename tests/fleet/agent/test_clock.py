"""The server's time as the agent carries it on; the PC's own clock decides nothing."""

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest

from fleet.agent.clock import ServerClock, TimeUnknownError, steady_seconds
from tests.fleet.agent.make import NOW


class Steady:
    """A clock that moves when told."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


def test_before_the_first_answer_the_time_is_unknown() -> None:
    clock = ServerClock()
    assert clock.now() is None
    with pytest.raises(TimeUnknownError):
        clock.require_now()


def test_the_servers_time_goes_on_with_the_steady_clock() -> None:
    steady = Steady()
    clock = ServerClock(steady=steady)
    clock.learn(NOW, asked_at=100.0, answered_at=100.0)
    steady.at = 3700.5
    assert clock.now() == NOW + timedelta(seconds=3600.5)


def test_an_answer_is_dated_in_the_middle_of_its_way() -> None:
    steady = Steady()
    clock = ServerClock(steady=steady)
    clock.learn(NOW, asked_at=98.0, answered_at=100.0)
    assert clock.now() == NOW + timedelta(seconds=1)


def test_a_later_answer_replaces_the_earlier_even_backwards() -> None:
    steady = Steady()
    clock = ServerClock(steady=steady)
    clock.learn(NOW, asked_at=100.0, answered_at=100.0)
    clock.learn(NOW - timedelta(hours=2), asked_at=100.0, answered_at=100.0)
    assert clock.now() == NOW - timedelta(hours=2)


@pytest.mark.parametrize("jump", [-86_400 * 365, -3600, 3600, 86_400, 2**31])
def test_a_jump_of_the_pcs_own_clock_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, jump: int
) -> None:
    steady = Steady()
    clock = ServerClock(steady=steady)
    clock.learn(NOW, asked_at=100.0, answered_at=100.0)
    true_time = time.time
    monkeypatch.setattr(time, "time", lambda: true_time() + jump)
    assert clock.now() == NOW


def test_the_time_is_in_utc_whatever_zone_the_server_writes() -> None:
    clock = ServerClock(steady=Steady())
    clock.learn(
        datetime(2026, 3, 2, 10, 0, tzinfo=timezone(timedelta(hours=1))),
        asked_at=100.0,
        answered_at=100.0,
    )
    now = clock.require_now()
    assert (now, now.tzinfo) == (NOW, UTC)


def test_the_steady_clock_never_goes_back() -> None:
    marks = [steady_seconds() for _ in range(100)]
    assert marks == sorted(marks)
