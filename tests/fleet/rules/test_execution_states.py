"""The execution's stored states and the words derived from its commands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.rules.command_states import CommandState
from fleet.rules.execution_states import (
    EXECUTION_MOVES,
    OPEN_EXECUTIONS,
    ExecutionState,
    Progress,
    execution_sources_of,
    progress,
    tally,
)

S = CommandState
E = ExecutionState


def test_the_set_of_stored_states_is_closed() -> None:
    assert [str(state) for state in ExecutionState] == [
        "awaiting_approval", "planning", "live", "ended", "cancelled",
    ]  # fmt: skip
    assert set(EXECUTION_MOVES) == set(ExecutionState)


def test_every_open_execution_can_be_cancelled_and_an_end_is_final() -> None:
    assert execution_sources_of(E.CANCELLED) == OPEN_EXECUTIONS
    assert EXECUTION_MOVES[E.ENDED] == EXECUTION_MOVES[E.CANCELLED] == frozenset()
    assert execution_sources_of(E.LIVE) == {E.AWAITING_APPROVAL, E.PLANNING}


@pytest.mark.parametrize(
    ("counts", "word"),
    [
        pytest.param({S.QUEUED: 3}, Progress.PENDING, id="20.2 sent, nothing back"),
        pytest.param({S.HANDED_OUT: 1}, Progress.PENDING, id="20.2 held, not started"),
        pytest.param({S.STARTED: 1, S.QUEUED: 2}, Progress.RUNNING, id="20.2 started"),
        pytest.param({S.SUCCEEDED: 1, S.QUEUED: 2}, Progress.RUNNING, id="20.3#6"),
        pytest.param({S.SUCCEEDED: 1, S.FAILED: 1}, Progress.COMPLETED, id="20.3#7"),
        pytest.param({S.SUCCEEDED: 2, S.FAILED: 1}, Progress.COMPLETED, id="20.3#8"),
        pytest.param({S.FAILED: 1}, Progress.COMPLETED, id="20.3#9 completed, not successful"),
        pytest.param(
            {S.SUCCEEDED: 3}, Progress.COMPLETED, id="20.3#10 ours: never more than commands"
        ),
        pytest.param({S.EXPIRED: 2}, Progress.EXPIRED, id="20.3 never answered"),
        pytest.param({S.EXPIRED: 2, S.SUCCEEDED: 1}, Progress.COMPLETED, id="one answered"),
        pytest.param({S.OUTCOME_UNKNOWN: 1}, Progress.COMPLETED, id="given up counts as over"),
        pytest.param({S.SKIPPED: 1}, Progress.COMPLETED, id="#271 a skip completes it"),
        pytest.param({S.CANCELLED: 1, S.QUEUED: 1}, Progress.RUNNING, id="one cancelled"),
        pytest.param({}, Progress.COMPLETED, id="without commands"),
    ],
)
def test_a_live_execution_is_described_by_its_commands(
    counts: dict[CommandState, int], word: Progress
) -> None:
    assert progress(E.LIVE, tally(counts)) is word


@pytest.mark.parametrize(
    ("state", "word"),
    [
        (E.AWAITING_APPROVAL, Progress.AWAITING_APPROVAL),
        (E.PLANNING, Progress.PLANNING),
        (E.CANCELLED, Progress.CANCELLED),
    ],
)
def test_an_execution_that_is_not_live_is_described_by_its_state(
    state: ExecutionState, word: Progress
) -> None:
    assert progress(state, tally({S.SUCCEEDED: 1})) is word


def test_an_ended_execution_whose_commands_all_expired_is_expired() -> None:
    assert progress(E.ENDED, tally({S.EXPIRED: 2})) is Progress.EXPIRED


def test_a_wave_to_come_keeps_an_execution_incomplete() -> None:
    so_far = tally({S.SUCCEEDED: 2}, still_to_come=3)
    assert (so_far.expected, so_far.over, so_far.is_complete) == (5, 2, False)
    assert progress(E.LIVE, so_far) is Progress.RUNNING


def test_a_late_answer_changes_the_counters_because_they_are_derived() -> None:
    """The original kept counting the failure; here the row is the only truth."""
    assert tally({S.OUTCOME_UNKNOWN: 1}).outcome_unknown == 1
    corrected = tally({S.SUCCEEDED: 1})
    assert (corrected.outcome_unknown, corrected.succeeded) == (0, 1)


def test_every_outcome_has_its_counter() -> None:
    one_each = tally(dict.fromkeys(CommandState, 1))
    assert (one_each.waiting, one_each.running, one_each.succeeded) == (3, 1, 1)
    assert (one_each.failed, one_each.skipped, one_each.expired) == (4, 1, 1)
    assert (one_each.cancelled, one_each.outcome_unknown) == (1, 1)


@given(st.dictionaries(st.sampled_from(CommandState), st.integers(0, 50)), st.integers(0, 9))
def test_nothing_is_lost_in_a_tally(counts: dict[CommandState, int], to_come: int) -> None:
    sums = tally(counts, still_to_come=to_come)
    assert sums.waiting + sums.running + sums.over + to_come == sums.expected
    assert sums.is_complete is (sums.over == sums.expected)
