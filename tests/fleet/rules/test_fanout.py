"""Waves with their times, and each machine's own start and deadline."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.rules.fanout import (
    Opening,
    Terms,
    Timetable,
    drawn_delay,
    latest_deadline,
    plan_commands,
    plan_waves,
    seed_of,
)
from fleet.rules.targets import Rollout, Wave
from fleet.rules.windows import Active, read_hours

NOW = datetime(2026, 6, 10, 23, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
NONE = timedelta(0)
NIGHT = Timetable(read_hours("22:00-05:00", ()), Active(), ZoneInfo("UTC"))


def terms(jitter: timedelta = NONE, wait: timedelta = HOUR) -> Terms:
    return Terms(jitter, wait, seed_of("inventory-6h"))


def test_without_jitter_everybody_may_start_at_once() -> None:
    planned = list(plan_commands([3, 1], terms=terms(), opening=Opening(NOW)))
    assert [(one.agent, one.start_after, one.deadline_at) for one in planned] == [
        (3, NOW, NOW + HOUR),
        (1, NOW, NOW + HOUR),
    ]


def test_58_starts_are_spread_evenly_and_stay_the_same_for_each_machine() -> None:
    span = 10 * MINUTE
    delays = [drawn_delay(agent, seed=seed_of("a"), span=span) for agent in range(600)]
    assert delays == [drawn_delay(agent, seed=seed_of("a"), span=span) for agent in range(600)]
    per_minute = [0] * 10
    for delay in delays:
        per_minute[delay // MINUTE] += 1
    assert min(per_minute) >= 55
    assert max(per_minute) <= 65


def test_two_schedules_draw_different_delays() -> None:
    first, second = (
        [drawn_delay(agent, seed=seed_of(name), span=HOUR) for agent in range(20)]
        for name in ("a", "b")
    )
    assert not set(first) & set(second)


def test_a_deadline_counts_from_the_drawn_start() -> None:
    planned = list(plan_commands(range(50), terms=terms(6 * HOUR), opening=Opening(NOW)))
    assert {one.deadline_at - one.start_after for one in planned} == {HOUR}
    assert max(one.deadline_at for one in planned) > NOW + 5 * HOUR


def test_a_late_draw_is_never_beyond_the_close_of_the_window() -> None:
    opening = NIGHT.opening_at(NOW)
    assert opening.closes_at == NOW + 6 * HOUR
    for one in plan_commands(range(200), terms=terms(2 * DAY, 7 * DAY), opening=opening):
        assert NOW <= one.start_after < NOW + 6 * HOUR
        assert one.start_after <= one.deadline_at < NOW + 6 * HOUR


def test_18_waves_go_out_by_their_own_delay_from_the_start() -> None:
    rollout = Rollout((Wave("canary", NONE), Wave("wave1", 10 * MINUTE), Wave("wave2", DAY)))
    planned = plan_waves(rollout, start=NOW, timetable=Timetable())
    assert [(wave.number, wave.group, wave.opening.due_at) for wave in planned] == [
        (0, "canary", NOW),
        (1, "wave1", NOW + 10 * MINUTE),
        (2, "wave2", NOW + DAY),
    ]


def test_a_wave_that_falls_outside_the_window_waits_until_it_opens() -> None:
    rollout = Rollout((Wave("canary", NONE), Wave("wave1", 8 * HOUR)))
    planned = plan_waves(rollout, start=NOW, timetable=NIGHT)
    late = planned[1].opening
    assert late.due_at == datetime(2026, 6, 11, 22, tzinfo=UTC)
    assert late.closes_at == datetime(2026, 6, 12, 5, tzinfo=UTC)


def test_a_wave_counts_its_deadline_from_its_own_time() -> None:
    rollout = Rollout((Wave("canary", NONE), Wave("wave1", DAY)))
    _, late = plan_waves(rollout, start=NOW, timetable=Timetable())
    (command,) = plan_commands([1], terms=terms(wait=HOUR), opening=late.opening)
    assert command.deadline_at == NOW + DAY + HOUR


@pytest.mark.parametrize(
    ("active", "hours"),
    [(Active(None, NOW + HOUR), None), (Active(), "22:00_05:00")],
    ids=["the schedule has ended by then", "the window cannot be read"],
)
def test_a_wave_that_can_never_go_out_says_so(active: Active, hours: str | None) -> None:
    timetable = Timetable(read_hours(hours, ()), active, ZoneInfo("UTC"))
    (wave,) = plan_waves(Rollout((Wave("late", 2 * HOUR),)), start=NOW, timetable=timetable)
    assert not wave.opening.is_possible


def test_the_open_time_ends_with_the_active_period_if_that_is_first() -> None:
    timetable = Timetable(NIGHT.hours, Active(None, NOW + HOUR), NIGHT.tz)
    assert timetable.opening_at(NOW) == Opening(NOW, NOW + HOUR)


@given(
    st.lists(st.integers(1, 10**9), max_size=20),
    st.timedeltas(NONE, timedelta(hours=24)),
    st.timedeltas(timedelta(seconds=1), timedelta(days=30)),
    st.none() | st.timedeltas(timedelta(seconds=1), timedelta(days=2)),
)
def test_every_command_can_start_and_none_starts_when_closed(
    agents: list[int], jitter: timedelta, wait: timedelta, open_for: timedelta | None
) -> None:
    opening = Opening(NOW, NOW + open_for if open_for is not None else None)
    shared = terms(jitter, wait)
    planned = list(plan_commands(agents, terms=shared, opening=opening))
    assert [one.agent for one in planned] == agents
    for one in planned:
        assert NOW <= one.start_after <= one.deadline_at <= latest_deadline(shared, opening)
        assert one.start_after - NOW <= jitter
        assert opening.closes_at is None or one.deadline_at < opening.closes_at
