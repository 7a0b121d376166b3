"""Deciding: who fires, by the case tables."""

from dataclasses import replace

import pytest

from fleet.rules.fanout import Timetable
from fleet.rules.firing import (
    Candidate,
    Dispatch,
    Reason,
    Skip,
    Snapshot,
    decide,
)
from fleet.rules.when import PerTarget
from fleet.rules.windows import Hours, parse_window
from tests.fleet.rules.firing_facts import (
    MINUTE,
    TICK,
    WHOLE,
    facts_of_table,
    make_facts,
    number,
    outcome,
    t,
)


@pytest.mark.parametrize(
    ("mode", "cooldown", "expected", "completions", "now", "result"),
    [
        ("tick", None, "ab", [("a", 0), ("b", 0)], 100, WHOLE),
        ("tick", None, "", [], 0, WHOLE),
        ("pc", None, "abc", [], 0, "abc"),
        ("pc", None, "abc", [("a", 0)], 100, "bc"),
        ("pc", None, "ab", [("a", 0), ("b", 0)], 100, None),
        ("pc", None, "", [], 0, None),
        ("pc", 60, "a", [("a", 100)], 110, None),
        ("pc", 60, "a", [("a", 100)], 159, None),
        ("pc", 60, "a", [("a", 100)], 160, "a"),
        ("pc", 60, "ab", [("a", 100), ("b", 200)], 500, "ab"),
        ("pc", 60, "ab", [("a", 100), ("b", 150)], 170, "a"),
        ("pc", 60, "a", [("a", 0), ("a", 150), ("a", 50)], 170, None),
        ("pc", None, "ab", [("a", 0), ("b", 0), ("ghost", 0)], 100, None),
        ("pc", 0, "a", [("a", 100)], 100, "a"),
        ("pc", 60, "a", [("a", 200)], 100, None),
        ("target", None, "ab", [], 0, "ab"),
        ("target", None, "ab", [("a", 0)], 100, None),
        ("target", None, "ab", [("ghost", 0)], 100, "ab"),
        ("target", None, "", [], 0, None),
        ("target", 60, "ab", [("a", 100)], 110, None),
        ("target", 60, "ab", [("a", 100)], 159, None),
        ("target", 60, "ab", [("a", 100)], 160, "ab"),
        ("target", 60, "ab", [("a", 0), ("b", 200)], 259, None),
        ("target", 60, "ab", [("a", 0), ("b", 200)], 260, "ab"),
    ],
    ids=[f"13.1#{row}" for row in range(1, 25)],
)
def test_who_still_has_to_succeed_fires(
    mode: str,
    cooldown: int | None,
    expected: str,
    completions: list[tuple[str, int]],
    now: int,
    result: str | None,
) -> None:
    facts = facts_of_table(mode, cooldown, expected, completions, now)
    wanted = [number(pc) for pc in result] if result and result != WHOLE else result
    assert outcome(facts) == wanted


@pytest.mark.parametrize(
    ("alive", "roster", "completions", "cooldown", "now", "reason"),
    [
        pytest.param("b", "ab", [("a", 0)], None, 100, Reason.ALL_DONE, id="13.1#25"),
        pytest.param("b", "ab", [("a", 100)], 60, 110, Reason.ALL_DONE, id="13.1#26"),
        pytest.param("b", "ab", [("a", 100)], 60, 160, None, id="13.1#27"),
        pytest.param("", "ab", [], None, 0, Reason.NOBODY_ALIVE, id="13.1#28"),
    ],
)
def test_912_a_member_that_succeeded_and_went_off_still_counts(
    alive: str,
    roster: str,
    completions: list[tuple[str, int]],
    cooldown: int | None,
    now: int,
    reason: Reason | None,
) -> None:
    decided = decide(facts_of_table("target", cooldown, alive, completions, now, roster=roster))
    if reason is None:
        assert isinstance(decided, Dispatch)
        assert decided.agents == (number("b"),)
    else:
        assert isinstance(decided, Skip)
        assert decided.reason is reason


def marked(marks: dict[str, int], now: int) -> Snapshot:
    """Two machines that never succeeded, with their dispatch marks and a window of 60 s."""
    candidates = tuple(
        Candidate(number(pc), last_dispatched_at=t(marks[pc]) if pc in marks else None)
        for pc in "ab"
    )
    return make_facts(now=t(now), window=MINUTE, candidates=candidates)


@pytest.mark.parametrize(
    ("marks", "now", "fired"),
    [
        pytest.param({"a": 100}, 110, [2], id="13.2#2"),
        pytest.param({"a": 100, "b": 105}, 110, None, id="13.2#3"),
        pytest.param({"a": 100, "b": 100}, 159, None, id="13.2#4"),
        pytest.param({"a": 100, "b": 100}, 160, [1, 2], id="13.2#5"),
        pytest.param({}, 110, [1, 2], id="13.2#6"),
        pytest.param({"a": 200, "b": 200}, 100, None, id="13.2#8"),
    ],
)
def test_444_a_dispatch_mutes_its_machine_for_the_window(
    marks: dict[str, int], now: int, fired: list[int] | None
) -> None:
    assert outcome(marked(marks, now)) == fired


@pytest.mark.parametrize("mark", [pytest.param(at, id=f"13.2#1 {at}") for at in (None, 0, 100)])
def test_skipping_stays_skipping_whatever_the_marks(mark: int | None) -> None:
    dispatched = t(mark) if mark is not None else None
    nobody = make_facts(now=t(110), target_dispatched_at=dispatched)
    assert outcome(nobody) is None


@pytest.mark.parametrize("mark", [pytest.param(at, id=f"13.2#7 {at}") for at in (60, 100)])
def test_the_mark_of_the_target_does_not_mute_single_machines(mark: int) -> None:
    facts = replace(marked({}, 110), target_dispatched_at=t(mark))
    assert outcome(facts) == [1, 2]


@pytest.mark.parametrize(
    ("mark", "now", "fires"),
    [
        pytest.param(100, 110, False, id="13.2#9"),
        pytest.param(100, 160, True, id="13.2#10"),
        pytest.param(None, 110, True, id="13.2#11"),
    ],
)
def test_a_dispatch_mutes_the_whole_target(mark: int | None, now: int, fires: bool) -> None:
    facts = make_facts(
        PerTarget(),
        now=t(now),
        window=MINUTE,
        candidates=(Candidate(1), Candidate(2)),
        target_dispatched_at=t(mark) if mark is not None else None,
    )
    assert outcome(facts) == ([1, 2] if fires else None)


@pytest.mark.parametrize(
    ("pcs", "in_flight", "cap", "kept"),
    [
        pytest.param(10, 2, 5, [1, 2, 3], id="14.3#1"),
        pytest.param(4, 5, 5, None, id="14.3#2"),
        pytest.param(4, 9, 5, None, id="14.3#3"),
        pytest.param(2, 0, 5, [1, 2], id="14.3#4"),
        pytest.param(5, 0, 5, [1, 2, 3, 4, 5], id="14.3#5"),
        pytest.param(0, 0, 5, None, id="14.3#6"),
    ],
)
def test_no_more_fire_than_slots_are_free(
    pcs: int, in_flight: int, cap: int, kept: list[int] | None
) -> None:
    candidates = tuple(Candidate(agent) for agent in range(1, pcs + 1))
    facts = make_facts(candidates=candidates, open_commands=in_flight, max_concurrent=cap)
    assert outcome(facts) == kept


def test_a_count_that_could_not_be_read_fires_nobody() -> None:
    facts = make_facts(candidates=(Candidate(1),), open_commands=None, max_concurrent=5)
    decided = decide(facts)
    assert isinstance(decided, Skip)
    assert (decided.reason, decided.detail) == (Reason.NO_FREE_SLOT, "unknown of 5 taken")


def test_a_failing_machine_cannot_starve_the_others_under_a_cap() -> None:
    waiting = (Candidate(1, due_at=t(50)), Candidate(2, due_at=t(10)), Candidate(3, due_at=t(10)))
    facts = make_facts(now=t(60), candidates=waiting, max_concurrent=2, open_commands=0)
    assert outcome(facts) == [2, 3]


def test_a_machine_with_a_live_command_is_never_fired_again() -> None:
    """A one-hour script outlives its half-hour window."""
    long_ago = t(-3000)
    running = Candidate(1, last_dispatched_at=long_ago, in_flight=True)
    facts = make_facts(candidates=(running, Candidate(2)))
    assert outcome(facts) == [2]


def test_one_member_still_trying_holds_the_whole_target() -> None:
    facts = make_facts(PerTarget(), candidates=(Candidate(1, in_flight=True), Candidate(2)))
    decided = decide(facts)
    assert isinstance(decided, Skip)
    assert decided.reason is Reason.IN_FLIGHT


def test_a_failing_machine_waits_from_its_failure_on() -> None:
    failed = Candidate(1, failures=2, last_failed_at=t(0), last_dispatched_at=t(-60))
    decided = decide(make_facts(now=t(239), candidates=(failed,)))
    assert isinstance(decided, Skip)
    assert (decided.reason, decided.opens_at) == (Reason.BACKING_OFF, t(240))
    assert outcome(make_facts(now=t(240), candidates=(failed,))) == [1]


def test_switched_off_a_failing_machine_waits_for_its_window_alone() -> None:
    failed = Candidate(1, failures=9, last_failed_at=t(0), last_dispatched_at=t(-120))
    assert outcome(make_facts(backs_off=False, candidates=(failed,))) == [1]


def test_a_calendar_fires_whatever_the_cap() -> None:
    facts = make_facts(TICK, roster=3, max_concurrent=1, open_commands=1)
    assert outcome(facts) == WHOLE


def test_a_calendar_whose_time_has_not_come_says_when_it_does() -> None:
    decided = decide(make_facts(TICK, is_due=False, next_fire_at=t(3600)))
    assert isinstance(decided, Skip)
    assert (decided.reason, decided.opens_at) == (Reason.ALL_DONE, t(3600))
    assert decided.detail == "next at 2026-06-10 01:00 UTC"


def test_a_calendar_that_is_over_says_so() -> None:
    decided = decide(make_facts(TICK, is_due=False))
    assert isinstance(decided, Skip)
    assert (decided.opens_at, decided.detail) == (None, "it never fires again")


def test_a_month_without_a_free_slot_is_no_reason_to_forget_the_window() -> None:
    """A window says when starts are allowed; the cap is asked last."""
    facts = make_facts(
        now=t(12 * 3600),
        timetable=Timetable(Hours(parse_window("22:00-05:00"))),
        max_concurrent=1,
        open_commands=1,
        candidates=(Candidate(1),),
    )
    decided = decide(facts)
    assert isinstance(decided, Skip)
    assert decided.reason is Reason.OUTSIDE_WINDOW
