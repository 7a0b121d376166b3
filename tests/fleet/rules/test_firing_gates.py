"""The gates: their order, what each says, and that explaining agrees with deciding."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.rules.cooldown import Success
from fleet.rules.fanout import Timetable
from fleet.rules.firing import (
    Candidate,
    Dispatch,
    Gate,
    JobFacts,
    Reason,
    Skip,
    Snapshot,
    decide,
    decision,
    explain,
    schedule_gates,
    standing,
    stops_early,
)
from fleet.rules.freeze import NOT_FROZEN, FreezeState
from fleet.rules.when import PerPc, PerTarget
from fleet.rules.windows import Active, Hours, parse_window
from tests.fleet.rules.firing_facts import MINUTE, T0, TICK, WHOLE, make_facts, outcome, t

OPENERS: list[tuple[Reason, Callable[[Snapshot], Snapshot]]] = [
    (Reason.FROZEN, lambda facts: replace(facts, freeze=FreezeState(frozen=False))),
    (Reason.DISABLED, lambda facts: replace(facts, is_enabled=True)),
    (Reason.RUNS_ON_AGENT, lambda facts: replace(facts, runs_on_agent=False)),
    (
        Reason.OUTSIDE_ACTIVE,
        lambda facts: replace(facts, timetable=replace(facts.timetable, active=Active())),
    ),
    (
        Reason.SKIP_DATE,
        lambda facts: replace(facts, timetable=Timetable(Hours(parse_window("09:00-17:00")))),
    ),
    (Reason.OUTSIDE_WINDOW, lambda facts: replace(facts, timetable=Timetable())),
    (Reason.JOB_MISSING, lambda facts: replace(facts, job=JobFacts("1", True, False))),
    (Reason.JOB_REVOKED, lambda facts: replace(facts, job=JobFacts("1", False, False))),
    (Reason.NOT_APPROVED, lambda facts: replace(facts, job=JobFacts("1"))),
    (Reason.BAD_DEADLINE, lambda facts: replace(facts, unreadable_deadline=None)),
    (Reason.NO_TARGET, lambda facts: replace(facts, has_target=True)),
    (Reason.COMPUTING_TARGET, lambda facts: replace(facts, is_computing=False)),
    (
        Reason.NOBODY_ALIVE,
        lambda facts: with_agent(facts, replace(facts.candidates[0], is_alive=True)),
    ),
    (
        Reason.ALL_DONE,
        lambda facts: with_agent(facts, replace(facts.candidates[0], success=None)),
    ),
    (
        Reason.BACKING_OFF,
        lambda facts: with_agent(facts, replace(facts.candidates[0], failures=0)),
    ),
    (
        Reason.IN_FLIGHT,
        lambda facts: with_agent(facts, replace(facts.candidates[0], in_flight=False)),
    ),
    (
        Reason.MUTED,
        lambda facts: with_agent(facts, replace(facts.candidates[0], last_dispatched_at=None)),
    ),
    (Reason.NO_FREE_SLOT, lambda facts: replace(facts, open_commands=0)),
]


def with_agent(facts: Snapshot, agent: Candidate) -> Snapshot:
    return replace(facts, candidates=(agent,))


def closed_everywhere() -> Snapshot:
    """A schedule that every single gate stops."""
    busy = Candidate(
        1,
        is_alive=False,
        success=Success(t(0)),
        last_dispatched_at=t(0),
        failures=3,
        last_failed_at=t(0),
        in_flight=True,
    )
    night = Hours(parse_window("09:00-17:00"), frozenset({T0.date()}))
    return make_facts(
        PerPc(MINUTE * 60),
        freeze=FreezeState(frozen=True, reason="year end"),
        is_enabled=False,
        runs_on_agent=True,
        timetable=Timetable(night, Active(unreadable="garbage")),
        job=None,
        unreadable_deadline="soon",
        has_target=False,
        is_computing=True,
        candidates=(busy,),
        max_concurrent=1,
        open_commands=1,
    )


def opened_up_to(reason: Reason) -> Snapshot:
    """`closed_everywhere` with every gate before `reason` opened."""
    facts = closed_everywhere()
    for opened, opener in OPENERS:
        if opened is reason:
            break
        facts = opener(facts)
    return facts


def test_the_openers_cover_every_gate_in_order() -> None:
    gates = [reason for reason in Reason if reason not in {Reason.DISPATCHED, Reason.ERROR}]
    assert [reason for reason, _ in OPENERS] == gates


# The steps of the table of the tick; the other gates are ours.
STEPS = {
    Reason.FROZEN: "1",
    Reason.OUTSIDE_ACTIVE: "2",
    Reason.SKIP_DATE: "3",
    Reason.OUTSIDE_WINDOW: "3",
    Reason.JOB_MISSING: "4",
    Reason.BAD_DEADLINE: "5",
    Reason.NO_TARGET: "8",
    Reason.ALL_DONE: "11",
    Reason.MUTED: "12",
    Reason.NO_FREE_SLOT: "13b",
}


def named_by_step(reason: Reason) -> str:
    return f"16 step {STEPS[reason]} {reason}" if reason in STEPS else str(reason)


@pytest.mark.parametrize("reason", [reason for reason, _ in OPENERS], ids=named_by_step)
def test_16_the_first_closed_gate_stops(reason: Reason) -> None:
    decided = decide(opened_up_to(reason))
    assert isinstance(decided, Skip)
    assert decided.reason is reason


def test_16_with_every_gate_open_it_fires() -> None:
    facts = closed_everywhere()
    for _, opener in OPENERS:
        facts = opener(facts)
    assert outcome(facts) == [1]


def test_16_no_gate_behind_the_first_closed_one_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Reason] = []

    def recording(ask: Callable[[Snapshot], Gate]) -> Callable[[Snapshot], Gate]:
        def record(facts: Snapshot) -> Gate:
            gate = ask(facts)
            asked.append(gate.reason)
            return gate

        return record

    gates = tuple(recording(ask) for ask in schedule_gates.SCHEDULE_GATES)
    monkeypatch.setattr(decision, "SCHEDULE_GATES", gates)
    decide(opened_up_to(Reason.SKIP_DATE))
    assert asked == [
        Reason.FROZEN,
        Reason.DISABLED,
        Reason.RUNS_ON_AGENT,
        Reason.OUTSIDE_ACTIVE,
        Reason.SKIP_DATE,
    ]


def test_every_reason_has_its_place_in_one_list() -> None:
    assert [str(reason) for reason in Reason][:3] == ["frozen", "disabled", "runs on agent"]
    gates = [gate.reason for gate in explain(closed_everywhere())]
    assert gates == [reason for reason, _ in OPENERS]


@pytest.mark.parametrize("reason", [reason for reason, _ in OPENERS])
def test_52_explaining_shows_every_gate_and_the_first_closed_one_decides(reason: Reason) -> None:
    facts = opened_up_to(reason)
    closed = [gate.reason for gate in explain(facts) if not gate.is_open]
    assert closed[0] is reason


def test_a_closed_gate_says_when_it_opens() -> None:
    hours = Hours(parse_window("22:00-05:00"))
    noon = t(12 * 3600)
    decided = decide(make_facts(now=noon, timetable=Timetable(hours)))
    assert isinstance(decided, Skip)
    assert decided.reason is Reason.OUTSIDE_WINDOW
    assert (decided.detail, decided.opens_at) == ("22:00-05:00 in UTC", t(22 * 3600))


def test_when_all_are_done_it_says_when_the_first_is_due_again() -> None:
    done = (Candidate(1, success=Success(t(0))), Candidate(2, success=Success(t(30))))
    decided = decide(make_facts(PerPc(MINUTE), now=t(40), candidates=done))
    assert isinstance(decided, Skip)
    assert (decided.reason, decided.opens_at) == (Reason.ALL_DONE, t(60))
    assert decided.counts == {Reason.ALL_DONE: 2}


def test_the_gate_that_stopped_the_last_agents_is_the_reason() -> None:
    facts = make_facts(
        candidates=(Candidate(1, is_alive=False), Candidate(2, success=Success(t(0)))),
        others={Reason.IN_FLIGHT: 3},
    )
    decided = decide(facts)
    assert isinstance(decided, Skip)
    assert decided.reason is Reason.IN_FLIGHT
    assert dict(decided.counts) == {
        Reason.NOBODY_ALIVE: 1,
        Reason.ALL_DONE: 1,
        Reason.IN_FLIGHT: 3,
    }


def test_others_that_were_only_counted_decide_like_candidates() -> None:
    facts = make_facts(others={Reason.ALL_DONE: 100_000}, others_due_at=t(500))
    decided = decide(facts)
    assert isinstance(decided, Skip)
    assert (decided.reason, decided.opens_at) == (Reason.ALL_DONE, t(500))


def test_an_empty_target_and_one_without_members_say_so() -> None:
    for facts, words in (
        (make_facts(has_target=False), "the target names nobody"),
        (make_facts(roster=0), "the target has no members"),
    ):
        decided = decide(facts)
        assert isinstance(decided, Skip)
        assert (decided.reason, decided.detail) == (Reason.NO_TARGET, words)


def test_a_fire_says_how_many_it_took_and_where_the_others_stopped() -> None:
    facts = make_facts(
        candidates=(Candidate(1), Candidate(2), Candidate(3)),
        max_concurrent=4,
        open_commands=2,
        others={Reason.ALL_DONE: 7},
    )
    decided = decide(facts)
    assert isinstance(decided, Dispatch)
    assert (decided.agents, decided.limit) == ((1, 2), 2)
    assert dict(decided.counts) == {
        Reason.ALL_DONE: 7,
        Reason.DISPATCHED: 2,
        Reason.NO_FREE_SLOT: 1,
    }


@pytest.mark.parametrize(
    ("free", "more"), [(None, True), (5, True), (2, False)], ids=["no cap", "room", "full"]
)
def test_more_of_the_same_are_wanted_while_slots_last(free: int | None, more: bool) -> None:
    facts = make_facts(candidates=(Candidate(1), Candidate(2)), has_more=True, max_concurrent=free)
    decided = decide(facts)
    assert isinstance(decided, Dispatch)
    assert (decided.has_more, decided.limit) == (more, free)


def test_by_hand_window_period_cooldown_and_muting_are_passed_over() -> None:
    facts = replace(
        closed_everywhere(),
        by_hand=True,
        freeze=FreezeState(frozen=False),
        job=JobFacts("1"),
        unreadable_deadline=None,
        has_target=True,
        is_computing=False,
        candidates=(),
        others={Reason.IN_FLIGHT: 1, Reason.DISPATCHED: 2},
    )
    assert outcome(facts) == WHOLE
    assert all(gate.is_open for gate in explain(facts))


@pytest.mark.parametrize(
    "facts",
    [
        make_facts(by_hand=True, freeze=FreezeState(frozen=True)),
        make_facts(by_hand=True, job=JobFacts(is_revoked=True)),
        make_facts(by_hand=True, job=JobFacts(has_runnable_revision=False)),
        make_facts(by_hand=True, others={Reason.IN_FLIGHT: 2}),
    ],
    ids=["frozen", "revoked", "not approved", "in flight"],
)
def test_by_hand_freeze_revocation_approval_and_in_flight_still_stop(facts: Snapshot) -> None:
    assert outcome(facts) is None


FROZEN = FreezeState(frozen=True)
SECONDS = st.integers(-4000, 400)
MOMENTS = st.none() | SECONDS.map(t)
AGENTS = st.builds(
    Candidate,
    st.integers(1, 50),
    is_alive=st.booleans(),
    success=st.none() | st.builds(Success, SECONDS.map(t), st.sampled_from(["", "2"])),
    last_dispatched_at=MOMENTS,
    failures=st.integers(0, 9),
    last_failed_at=MOMENTS,
    in_flight=st.booleans(),
    due_at=SECONDS.map(t),
)
TIMETABLES = st.builds(
    Timetable,
    st.sampled_from([Hours(), Hours(parse_window("22:00-05:00")), Hours(bad_window="x")]),
    st.sampled_from([Active(), Active(t(60)), Active(None, t(60))]),
)
FACTS = st.builds(
    Snapshot,
    now=SECONDS.map(t),
    when=st.sampled_from([PerPc(), PerPc(MINUTE), PerTarget(), PerTarget(MINUTE), TICK]),
    freeze=st.sampled_from([NOT_FROZEN, NOT_FROZEN, FROZEN]),
    window=st.sampled_from([2 * MINUTE, 30 * MINUTE]),
    job=st.none() | st.builds(JobFacts, st.just(""), st.booleans(), st.booleans()),
    timetable=TIMETABLES,
    is_computing=st.booleans(),
    backs_off=st.booleans(),
    max_concurrent=st.none() | st.integers(1, 3),
    open_commands=st.none() | st.integers(0, 4),
    candidates=st.lists(AGENTS, max_size=6, unique_by=lambda one: one.agent).map(tuple),
    others=st.dictionaries(
        st.sampled_from([Reason.ALL_DONE, Reason.IN_FLIGHT, Reason.MUTED]), st.integers(1, 9)
    ),
    target_success=st.none() | st.builds(Success, SECONDS.map(t)),
    target_dispatched_at=MOMENTS,
    is_due=st.booleans(),
    by_hand=st.booleans(),
)


@given(FACTS)
def test_deciding_stops_at_the_first_gate_that_explaining_shows_closed(facts: Snapshot) -> None:
    closed = [gate for gate in explain(facts) if not gate.is_open]
    match decide(facts):
        case Skip(reason, detail, opens_at):
            assert (closed[0].reason, closed[0].detail, closed[0].opens_at) == (
                reason,
                detail,
                opens_at,
            )
        case Dispatch():
            assert closed == []


@given(FACTS)
def test_what_stops_early_is_stopped_whoever_the_agents_are(facts: Snapshot) -> None:
    if stops_early(facts):
        assert decide(facts) == decide(replace(facts, candidates=(), others={}))


@given(FACTS)
def test_only_those_who_are_wanted_fire_and_no_more_than_fit(facts: Snapshot) -> None:
    decided = decide(facts)
    if not isinstance(decided, Dispatch) or decided.agents is None:
        return
    assert decided.limit is None or len(decided.agents) <= decided.limit
    by_number = {one.agent: one for one in facts.candidates}
    for agent in decided.agents:
        assert by_number[agent].is_alive
        if isinstance(facts.when, PerPc):
            assert standing(by_number[agent], facts).reason is Reason.DISPATCHED


@given(FACTS)
def test_a_gate_never_promises_to_open_in_the_past(facts: Snapshot) -> None:
    for gate in explain(facts):
        assert gate.opens_at is None or gate.opens_at > facts.now
