"""The command's state machine, and when a silent run is given up."""

from datetime import UTC, datetime, timedelta

import pytest

from fleet.rules.command_states import (
    ANSWERS,
    FAILURES,
    HELD,
    MOVES,
    OPEN,
    RUNS,
    TERMINAL,
    WAITING,
    CommandState,
    give_up_at,
    is_given_up,
    may_move,
    sources_of,
)

NOW = datetime(2026, 6, 10, 12, tzinfo=UTC)
S = CommandState


def test_the_set_of_states_is_closed() -> None:
    assert [str(state) for state in CommandState] == [
        "staged", "queued", "handed_out", "started",
        "succeeded", "failed", "timed_out", "killed", "skipped", "refused",
        "expired", "cancelled", "outcome_unknown",
    ]  # fmt: skip


def test_every_state_is_either_open_or_terminal() -> None:
    assert set(CommandState) == OPEN | TERMINAL
    assert not OPEN & TERMINAL
    assert OPEN == WAITING | HELD
    assert ANSWERS < TERMINAL
    assert FAILURES < ANSWERS
    assert TERMINAL - {S.SKIPPED, S.EXPIRED, S.CANCELLED} == RUNS


def test_every_state_has_its_row_in_the_table_of_moves() -> None:
    assert set(MOVES) == set(CommandState)


@pytest.mark.parametrize(
    ("old", "new", "allowed"),
    [
        (S.STAGED, S.QUEUED, True),
        (S.STAGED, S.HANDED_OUT, False),
        (S.QUEUED, S.HANDED_OUT, True),
        (S.QUEUED, S.STARTED, False),
        (S.QUEUED, S.SUCCEEDED, False),
        (S.HANDED_OUT, S.STARTED, True),
        (S.HANDED_OUT, S.SUCCEEDED, True),
        (S.HANDED_OUT, S.QUEUED, False),
        (S.STARTED, S.FAILED, True),
        (S.STARTED, S.HANDED_OUT, False),
        (S.STARTED, S.EXPIRED, False),
        (S.SUCCEEDED, S.FAILED, False),
        (S.FAILED, S.STARTED, False),
        (S.EXPIRED, S.SUCCEEDED, False),
        (S.CANCELLED, S.HANDED_OUT, False),
    ],
)
def test_a_command_moves_forward_only(old: S, new: S, allowed: bool) -> None:
    assert may_move(old, new) is allowed


@pytest.mark.parametrize("state", sorted(TERMINAL - {S.OUTCOME_UNKNOWN}))
def test_an_end_is_final(state: S) -> None:
    assert MOVES[state] == frozenset()


@pytest.mark.parametrize("answer", sorted(ANSWERS))
def test_a_late_real_answer_corrects_what_was_given_up(answer: S) -> None:
    assert may_move(S.OUTCOME_UNKNOWN, answer)


def test_what_was_given_up_never_opens_again() -> None:
    assert not MOVES[S.OUTCOME_UNKNOWN] & OPEN


def test_sources_are_the_moves_read_backwards() -> None:
    for new in CommandState:
        assert sources_of(new) == {old for old in CommandState if may_move(old, new)}
    assert sources_of(S.QUEUED) == {S.STAGED}
    assert sources_of(S.EXPIRED) == {S.STAGED, S.QUEUED, S.HANDED_OUT, S.OUTCOME_UNKNOWN}


def test_every_open_state_can_end() -> None:
    for state in OPEN:
        assert MOVES[state] & TERMINAL


@pytest.mark.parametrize(
    ("timeout", "limit"),
    [
        pytest.param(timedelta(seconds=20), timedelta(seconds=140), id="20.2#1"),
        pytest.param(timedelta(seconds=240), timedelta(seconds=360), id="20.2#2"),
        pytest.param(timedelta(seconds=241), timedelta(seconds=361.5), id="20.2#3"),
        pytest.param(timedelta(hours=1), timedelta(minutes=90), id="20.2#4"),
        pytest.param(timedelta(days=900), timedelta(days=365), id="20.2 one year at most"),
        pytest.param(None, timedelta(hours=24), id="20.2 unknown limit"),
    ],
)
def test_a_run_is_given_up_after_its_timeout_and_a_grace(
    timeout: timedelta | None, limit: timedelta
) -> None:
    assert give_up_at(NOW, timeout) == NOW + limit


def test_retries_put_off_giving_up() -> None:
    plain = give_up_at(NOW, timedelta(seconds=20))
    retrying = give_up_at(NOW, timedelta(seconds=20), retries=timedelta(minutes=10))
    assert retrying - plain == timedelta(minutes=10)


@pytest.mark.parametrize(
    ("started_ago", "expires_in", "given_up"),
    [
        pytest.param(timedelta(hours=25), None, True, id="21#6"),
        pytest.param(timedelta(hours=1), None, False, id="21#7"),
        pytest.param(timedelta(hours=24), None, False, id="21 no expires_at, exactly 24 h"),
        pytest.param(timedelta(minutes=10), timedelta(minutes=-5), True, id="21#8"),
        pytest.param(timedelta(hours=30), timedelta(hours=1), False, id="21#9"),
        pytest.param(timedelta(hours=30), timedelta(0), False, id="21#10"),
    ],
)
def test_a_run_without_an_answer_is_given_up_strictly_after_its_limit(
    started_ago: timedelta, expires_in: timedelta | None, given_up: bool
) -> None:
    expires_at = NOW + expires_in if expires_in is not None else None
    assert is_given_up(started_at=NOW - started_ago, expires_at=expires_at, now=NOW) is given_up
