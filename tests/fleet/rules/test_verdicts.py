"""What becomes of a reported result."""

import pytest

from fleet.rules.command_states import ANSWERS, CommandState
from fleet.rules.verdicts import Store, Stored, Verdict, judge_result

S = CommandState
SAME, OTHER = Stored("d1", is_stand_in=False), Stored("d2", is_stand_in=False)
STAND_IN = Stored("", is_stand_in=True)


@pytest.mark.parametrize(
    ("state", "stored", "outcome", "expected"),
    [
        pytest.param(S.STARTED, None, S.SUCCEEDED, Store(S.SUCCEEDED, False), id="20.3#2"),
        pytest.param(S.HANDED_OUT, None, S.FAILED, Store(S.FAILED, False), id="20.3#1 no start"),
        pytest.param(S.HANDED_OUT, None, S.REFUSED, Store(S.REFUSED, False), id="refused"),
        pytest.param(S.HANDED_OUT, None, S.EXPIRED, Store(S.EXPIRED, False), id="expired there"),
        pytest.param(
            S.STARTED, None, S.OUTCOME_UNKNOWN, Store(S.OUTCOME_UNKNOWN, False), id="crashed"
        ),
        pytest.param(S.STARTED, None, S.EXPIRED, Store(S.FAILED, False), id="expired on the way"),
        pytest.param(S.SUCCEEDED, SAME, S.SUCCEEDED, Verdict.DUPLICATE, id="20.3#3"),
        pytest.param(S.SUCCEEDED, OTHER, S.FAILED, Verdict.CONFLICT, id="T-15"),
        pytest.param(
            S.OUTCOME_UNKNOWN, STAND_IN, S.SUCCEEDED, Store(S.SUCCEEDED, True), id="20.3#4"
        ),
        pytest.param(
            S.OUTCOME_UNKNOWN,
            STAND_IN,
            S.OUTCOME_UNKNOWN,
            Store(None, True),
            id="both unknown",
        ),
        pytest.param(S.CANCELLED, None, S.SUCCEEDED, Store(None, True), id="ran after a cancel"),
        pytest.param(S.EXPIRED, None, S.FAILED, Store(None, True), id="ran after its expiry"),
        pytest.param(S.SKIPPED, None, S.SUCCEEDED, Store(None, True), id="ran after a skip"),
        pytest.param(S.CANCELLED, SAME, S.SUCCEEDED, Verdict.DUPLICATE, id="the same, late, again"),
        pytest.param(S.SUCCEEDED, None, S.SUCCEEDED, Verdict.DUPLICATE, id="F-15 pruned since"),
        pytest.param(S.FAILED, None, S.SUCCEEDED, Verdict.DUPLICATE, id="F-15 pruned, another"),
        pytest.param(S.QUEUED, None, S.SUCCEEDED, Store(S.SUCCEEDED, False), id="F-05 lost tail"),
        pytest.param(S.STAGED, None, S.KILLED, Store(S.KILLED, False), id="F-05 lost tail, staged"),
    ],
)
def test_a_result_is_judged_by_its_command_and_what_is_stored(
    state: CommandState,
    stored: Stored | None,
    outcome: CommandState,
    expected: Store | Verdict,
) -> None:
    assert judge_result(state, stored, outcome=outcome, digest="d1") == expected


@pytest.mark.parametrize("outcome", [*sorted(ANSWERS), S.OUTCOME_UNKNOWN])
@pytest.mark.parametrize("state", [S.HANDED_OUT, S.STARTED])
def test_every_first_answer_ends_an_open_command(
    state: CommandState, outcome: CommandState
) -> None:
    judged = judge_result(state, None, outcome=outcome, digest="d1")

    assert isinstance(judged, Store)
    assert judged.ends_as is not None
