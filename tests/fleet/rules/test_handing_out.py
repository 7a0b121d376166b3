"""The gate at the hand-out."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from fleet.rules.command_states import CommandState, may_move
from fleet.rules.handing_out import End, Give, Hold, Offer, judge

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
OPEN = Offer(
    deadline_at=NOW + timedelta(hours=1),
    is_stopped=False,
    is_revoked=False,
    is_current=True,
    is_approved=True,
    is_live=True,
    overrides_freeze=False,
)
SKIPPED, EXPIRED, CANCELLED = (
    CommandState.SKIPPED,
    CommandState.EXPIRED,
    CommandState.CANCELLED,
)


@pytest.mark.parametrize(
    ("changes", "frozen", "expected"),
    [
        pytest.param({}, False, Give(), id="nothing forbids it"),
        pytest.param({}, True, Hold("frozen"), id="frozen"),
        pytest.param({"overrides_freeze": True}, True, Give(), id="freeze overridden"),
        pytest.param({"is_revoked": True}, False, End(SKIPPED, "job revoked"), id="revoked"),
        pytest.param(
            {"is_revoked": True, "overrides_freeze": True},
            True,
            End(SKIPPED, "job revoked"),
            id="revoked, freeze overridden",
        ),
        pytest.param(
            {"is_current": False},
            False,
            End(SKIPPED, "another version of the job is current"),
            id="version pin (124)",
        ),
        pytest.param(
            {"is_approved": False, "is_current": False},
            False,
            Hold("not approved"),
            id="not approved",
        ),
        pytest.param({"is_live": False}, False, Hold("its execution is not live"), id="not live"),
        pytest.param({"deadline_at": NOW}, False, Give(), id="the deadline itself"),
        pytest.param(
            {"deadline_at": NOW - timedelta(microseconds=1)},
            False,
            End(EXPIRED, "its deadline passed before it was handed out"),
            id="past the deadline (125)",
        ),
        pytest.param(
            {"deadline_at": NOW - timedelta(hours=1)},
            True,
            End(EXPIRED, "its deadline passed before it was handed out"),
            id="past the deadline while frozen",
        ),
        pytest.param(
            {"is_stopped": True}, True, End(CANCELLED, "stopped before it started"), id="stopped"
        ),
    ],
)
def test_a_command_goes_out_only_if_every_gate_is_open(
    changes: dict[str, object], frozen: bool, expected: object
) -> None:
    offer = replace(OPEN, **changes)  # type: ignore[arg-type]  # a table

    assert judge(offer, frozen=frozen, now=NOW) == expected


@pytest.mark.parametrize("state", [CommandState.QUEUED, CommandState.HANDED_OUT])
@pytest.mark.parametrize("end", [SKIPPED, EXPIRED, CANCELLED])
def test_every_end_of_the_gate_is_a_move_that_the_table_allows(
    state: CommandState, end: CommandState
) -> None:
    assert may_move(state, end)
