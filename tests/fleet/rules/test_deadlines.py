"""Until when a command may start."""

from datetime import UTC, datetime, timedelta

import pytest

from fleet.rules.deadlines import deadline_of, is_past, wait_for_start

NOW = datetime(2026, 6, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("lateness", "past"),
    [(None, False), (-1, False), (0, False), (1, True), (86_300, True)],
    ids=["23#1", "23#2", "23#3", "23#4", "23#5"],
)
def test_the_deadline_is_the_last_allowed_instant(lateness: int | None, past: bool) -> None:
    deadline = NOW - timedelta(seconds=lateness) if lateness is not None else None
    assert is_past(deadline, NOW) is past


def test_a_schedule_s_own_deadline_comes_first() -> None:
    assert wait_for_start(HOUR, suppression=timedelta(minutes=2)) == HOUR


def test_a_reconcile_command_waits_as_long_as_it_mutes() -> None:
    window = timedelta(minutes=2)
    assert wait_for_start(None, suppression=window) == window


def test_a_calendar_command_waits_a_week() -> None:
    assert wait_for_start(None, suppression=None) == timedelta(days=7)


def test_nothing_may_start_at_the_close_of_its_window() -> None:
    deadline = deadline_of(NOW, wait=7 * HOUR, closes_at=NOW + HOUR)
    assert not is_past(deadline, NOW + HOUR - timedelta(milliseconds=1))
    assert is_past(deadline, NOW + HOUR)


def test_the_deadline_counts_from_the_command_s_own_start() -> None:
    late_start = NOW + 3 * HOUR
    assert deadline_of(late_start, wait=HOUR, closes_at=None) == NOW + 4 * HOUR
