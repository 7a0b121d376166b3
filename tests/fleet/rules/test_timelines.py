"""A reconcile schedule minute by minute: decisions and their consequences played together."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fleet.rules.cooldown import Success
from fleet.rules.firing import Candidate, Dispatch, decide
from fleet.rules.when import PerPc, When
from tests.fleet.rules.firing_facts import make_facts, t


class Fleet:
    """Machines by number, the marks that dispatches leave, and the runs that come back."""

    def __init__(self, when: When, machines: int, *, cap: int | None = None) -> None:
        self.when = when
        self.cap = cap
        self.agents = {number: Candidate(number) for number in range(1, machines + 1)}

    def tick(self, minute: float) -> list[int]:
        """Decide at that minute and mark who was fired."""
        now = t(minute * 60)
        running = sum(agent.in_flight for agent in self.agents.values())
        facts = make_facts(
            self.when,
            now=now,
            window=timedelta(seconds=120),
            candidates=tuple(self.agents.values()),
            max_concurrent=self.cap,
            open_commands=running,
        )
        decided = decide(facts)
        fired = list(decided.agents or ()) if isinstance(decided, Dispatch) else []
        for number in fired:
            self.agents[number] = replace(
                self.agents[number], last_dispatched_at=now, in_flight=True
            )
        return fired

    def succeed(self, number: int, minute: float) -> None:
        self.agents[number] = replace(
            self.agents[number], in_flight=False, failures=0, success=Success(t(minute * 60))
        )

    def fail(self, number: int, minute: float) -> None:
        agent = self.agents[number]
        self.agents[number] = replace(
            agent, in_flight=False, failures=agent.failures + 1, last_failed_at=t(minute * 60)
        )


Played = dict[float, list[int]]


def six_hours() -> Played:
    """Who was fired at each minute: the first machine succeeds at 1:30, the other one fails."""
    fleet = Fleet(PerPc(timedelta(hours=6)), 2)
    fired: Played = {minute: fleet.tick(minute) for minute in (0, 1)}
    fleet.succeed(1, 1.5)
    fleet.fail(2, 1.5)
    fired |= {minute: fleet.tick(minute) for minute in (1.5, 2, 3, 4)}
    fleet.fail(2, 4.5)
    return fired | {minute: fleet.tick(minute) for minute in (*range(5, 11), 361, 362)}


@pytest.mark.parametrize(
    ("minute", "fired"),
    [
        pytest.param(0, [1, 2], id="16#1"),
        pytest.param(1, [], id="16#2"),
        pytest.param(1.5, [], id="16#3"),
        pytest.param(2, [], id="16#4 ours: it waits from its failure on"),
        pytest.param(3, [], id="16#5"),
        pytest.param(4, [2], id="16#6 ours: two minutes after its failure"),
        pytest.param(8, [], id="four minutes after the next"),
        pytest.param(9, [2], id="and not before"),
        pytest.param(361, [], id="16#7"),
        pytest.param(362, [1], id="16#8"),
    ],
)
def test_every_six_hours_one_succeeds_and_one_fails(minute: float, fired: list[int]) -> None:
    """Minutes 2 and 4 differ from the original, which fired as soon as the window had ended."""
    assert six_hours()[minute] == fired


def test_16_a_failing_machine_is_asked_once_an_hour_in_the_end() -> None:
    """The original retried it every two minutes for ever."""
    fleet = Fleet(PerPc(), 1)
    fired = []
    for minute in range(600):
        if fleet.tick(minute):
            fired.append(minute)
            fleet.fail(1, minute)
    assert fired == [0, 2, 6, 14, 30, 62, 122, 182, 242, 302, 362, 422, 482, 542]


def capped_at_two() -> Played:
    """Who was fired at each minute of five machines whose runs take a minute and a half."""
    fleet = Fleet(PerPc(), 5, cap=2)
    fired: Played = {}
    for minute in range(60):
        for number, agent in list(fleet.agents.items()):
            started = agent.last_dispatched_at
            if agent.in_flight and started and started + timedelta(seconds=90) <= t(minute * 60):
                fleet.succeed(number, minute)
        fired[minute] = fleet.tick(minute)
    return fired


@pytest.mark.parametrize(
    ("minute", "fired"),
    [
        pytest.param(0, [1, 2], id="16#9"),
        pytest.param(1, [], id="16#10"),
        pytest.param(2, [3, 4], id="16#11"),
        pytest.param(3, [], id="both slots taken again"),
        pytest.param(4, [5], id="16#12"),
    ],
)
def test_once_under_a_cap_of_two(minute: int, fired: list[int]) -> None:
    assert capped_at_two()[minute] == fired


def test_once_under_a_cap_everybody_is_fired_once_and_never_again() -> None:
    fired = [number for numbers in capped_at_two().values() for number in numbers]
    assert fired == [1, 2, 3, 4, 5]


def test_444_a_run_longer_than_its_window_is_not_started_twice() -> None:
    fleet = Fleet(PerPc(), 1)
    assert fleet.tick(0) == [1]
    assert [fleet.tick(minute) for minute in range(1, 90)] == [[]] * 89


def test_23_each_machine_runs_in_every_day_in_spite_of_an_outage() -> None:
    fleet = Fleet(PerPc(timedelta(hours=24)), 3)
    fired = []
    for minute in range(3 * 24 * 60):
        server_is_down = 12 * 60 <= minute < 26 * 60
        if not server_is_down and (numbers := fleet.tick(minute)):
            fired.append((minute, numbers))
            for number in numbers:
                fleet.succeed(number, minute)
    assert fired == [(0, [1, 2, 3]), (26 * 60, [1, 2, 3]), (50 * 60, [1, 2, 3])]
