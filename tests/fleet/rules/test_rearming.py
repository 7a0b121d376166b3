"""When a machine is due again."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.rules.cooldown import LONG_AGO, Success
from fleet.rules.firing import Candidate, Reason, standing
from fleet.rules.rearming import Terms, due_again
from fleet.rules.when import PerPc, When
from tests.fleet.rules.firing_facts import make_facts

NOW = datetime(2026, 6, 10, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = 60 * MINUTE


def due(when: When, **facts: object) -> datetime | None:
    """When a machine of a schedule with a window of two minutes is due."""
    known: dict[str, object] = {"success": None, "last_dispatched_at": None} | facts
    terms = Terms(when, "1", 2 * MINUTE, backs_off=bool(known.pop("backs_off", True)))
    return due_again(terms, now=NOW, **known)  # type: ignore[arg-type]  # the rule's own names


@pytest.mark.parametrize(
    ("when", "facts", "at"),
    [
        pytest.param(PerPc(HOUR), {}, LONG_AGO, id="it never ran"),
        pytest.param(PerPc(HOUR), {"success": Success(NOW)}, NOW + HOUR, id="cooldown"),
        pytest.param(PerPc(), {"success": Success(NOW)}, None, id="once is for ever"),
        pytest.param(
            PerPc(), {"last_dispatched_at": NOW - MINUTE}, NOW + MINUTE, id="muted by a dispatch"
        ),
        pytest.param(
            PerPc(),
            {"failures": 3, "last_failed_at": NOW, "last_dispatched_at": NOW - HOUR},
            NOW + 8 * MINUTE,
            id="pause after failures",
        ),
        pytest.param(
            PerPc(),
            {"failures": 3, "last_failed_at": NOW, "backs_off": False},
            LONG_AGO,
            id="pause switched off",
        ),
        pytest.param(
            PerPc(MINUTE),
            {"success": Success(NOW - MINUTE), "last_dispatched_at": NOW},
            NOW + 2 * MINUTE,
            id="the latest end counts",
        ),
        pytest.param(
            PerPc(), {"last_dispatched_at": NOW + HOUR}, LONG_AGO, id="a mark of a wrong clock"
        ),
    ],
)
def test_it_is_due_when_nothing_holds_it_any_more(
    when: When, facts: dict[str, object], at: datetime | None
) -> None:
    assert due(when, **facts) == at


MOMENTS = st.none() | st.integers(-5000, 200).map(lambda s: NOW + timedelta(seconds=s))


@given(
    st.sampled_from([PerPc(), PerPc(10 * MINUTE), PerPc(HOUR)]),
    MOMENTS,
    MOMENTS,
    st.integers(0, 9),
    MOMENTS,
    st.booleans(),
)
def test_the_due_time_has_come_exactly_when_the_gates_are_open(
    when: PerPc,
    succeeded_at: datetime | None,
    dispatched_at: datetime | None,
    failures: int,
    failed_at: datetime | None,
    backs_off: bool,
) -> None:
    success = Success(succeeded_at, "1") if succeeded_at else None
    at = due(
        when,
        success=success,
        last_dispatched_at=dispatched_at,
        failures=failures,
        last_failed_at=failed_at,
        backs_off=backs_off,
    )
    candidate = Candidate(
        1,
        success=success,
        last_dispatched_at=dispatched_at,
        failures=failures,
        last_failed_at=failed_at,
    )
    facts = make_facts(when, now=NOW, window=2 * MINUTE, backs_off=backs_off)
    is_wanted = standing(candidate, facts).reason is Reason.DISPATCHED
    assert is_wanted is (at is not None and at <= NOW)
