"""When a schedule is worth looking at again."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.rules.cooldown import Success
from fleet.rules.fanout import Timetable
from fleet.rules.firing import Candidate, JobFacts, Look, Reason, Snapshot, decide, next_look
from fleet.rules.freeze import FreezeState
from fleet.rules.when import PerPc, PerTarget
from fleet.rules.windows import Active, Hours, parse_window
from tests.fleet.rules.firing_facts import MINUTE, TICK, make_facts, t

HOUR = 60 * MINUTE
NIGHT = Timetable(Hours(parse_window("22:00-05:00")))


def look(facts: Snapshot) -> Look:
    return next_look(facts, decide(facts))


@pytest.mark.parametrize(
    ("facts", "at"),
    [
        (make_facts(now=t(12 * 3600), timetable=NIGHT), t(22 * 3600)),
        (make_facts(timetable=Timetable(active=Active(t(500)))), t(500)),
        (make_facts(freeze=FreezeState(True, until=t(900))), t(900)),
        (make_facts(freeze=FreezeState(True)), t(300)),
        (make_facts(job=JobFacts(is_revoked=True)), t(300)),
        (make_facts(is_computing=True), t(300)),
        (make_facts(has_target=False), t(300)),
        (make_facts(is_enabled=False), None),
        (make_facts(runs_on_agent=True), None),
    ],
    ids=[
        "window", "period", "frozen until", "frozen", "revoked", "computing", "no target",
        "disabled", "on agents",
    ],
)  # fmt: skip
def test_a_closed_gate_of_the_schedule_holds_it_until_that_may_open(
    facts: Snapshot, at: datetime | None
) -> None:
    assert look(facts) == Look(at, held=True)


@pytest.mark.parametrize(
    ("facts", "at"),
    [
        (make_facts(candidates=(Candidate(1),)), t(60)),
        (make_facts(others={Reason.IN_FLIGHT: 3}, roster=3), t(60)),
        (make_facts(others={Reason.IN_FLIGHT: 3}, roster=100_000), t(660)),
        (make_facts(others={Reason.ALL_DONE: 3}, others_due_at=t(900)), None),
        (make_facts(candidates=(Candidate(1, is_alive=False),)), None),
        (make_facts(TICK, is_due=False, next_fire_at=t(3600)), t(3600)),
        (make_facts(PerTarget(), others={Reason.NOBODY_ALIVE: 2}), t(60)),
        (
            make_facts(PerTarget(HOUR), candidates=(Candidate(1),), target_success=Success(t(0))),
            t(3600),
        ),
        (
            make_facts(PerTarget(), candidates=(Candidate(1),), target_success=Success(t(0))),
            None,
        ),
    ],
    ids=[
        "fired", "in flight", "in flight, large", "done", "offline", "calendar",
        "target offline", "target done", "target done for ever",
    ],
)  # fmt: skip
def test_agents_that_become_due_need_no_look_of_their_own(
    facts: Snapshot, at: datetime | None
) -> None:
    assert look(facts) == Look(at)


def test_the_end_of_the_open_hours_is_looked_at_too() -> None:
    done = (Candidate(1, success=Success(t(0))),)
    facts = make_facts(PerPc(), candidates=done, timetable=NIGHT)
    assert look(facts) == Look(t(5 * 3600))


@given(st.integers(0, 48), st.booleans(), st.booleans())
def test_a_look_is_never_in_the_past(hours: int, is_enabled: bool, is_computing: bool) -> None:
    facts = make_facts(
        now=t(0) + timedelta(hours=hours),
        timetable=Timetable(NIGHT.hours, Active(t(3600), t(24 * 3600))),
        is_enabled=is_enabled,
        is_computing=is_computing,
    )
    at = look(facts).at
    assert at is None or at > facts.now
