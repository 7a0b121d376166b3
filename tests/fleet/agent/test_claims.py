"""The claims of schedules that the agent fires itself, case by case."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from fleet.agent import state
from fleet.agent.claims import Claim, ClaimBook, Taken, finish, take
from fleet.agent.commands import Outcome
from fleet.rules.cooldown import Success
from fleet.rules.when import Calendar, PerPc, PerTarget, When
from tests.fleet.agent.make import NOW

TTL = timedelta(seconds=60)
HOURLY = PerPc(every=timedelta(hours=1))
TICK = Calendar(cron="* * * * *")


def t(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def taken(claim: Claim, when: When, at: float, *, is_alive: bool = False) -> Taken | None:
    return take(claim, when, version="1", now=t(at), ttl=TTL, is_alive=is_alive)


def claimed(at: float, before: Claim | None = None) -> Claim:
    found = taken(before or Claim(), TICK, at)
    assert found is not None
    return found.claim


def ended(claim: Claim, token: float, at: float, outcome: Outcome = Outcome.SUCCEEDED) -> Claim:
    return finish(claim, t(token), outcome, version="1", now=t(at))


DONE_AT_0 = Claim(success=Success(NOW, "1"))
CASES = [
    pytest.param(Claim(), HOURLY, 0, (True, False), id="24#1"),
    pytest.param(claimed(0), HOURLY, 0, (False, False), id="24#2"),
    pytest.param(DONE_AT_0, HOURLY, 1800, (False, False), id="24#3"),
    pytest.param(DONE_AT_0, HOURLY, 3600, (True, False), id="24#4"),
    pytest.param(Claim(), TICK, 0, (True, False), id="24#5"),
    pytest.param(claimed(0), TICK, 10, (False, False), id="24#6"),
    pytest.param(ended(claimed(0), 60, 10), TICK, 20, (True, False), id="24#7"),
    pytest.param(claimed(0), TICK, 30, (False, False), id="24#8"),
    pytest.param(claimed(0), TICK, 60, (True, True), id="24#9"),
    pytest.param(claimed(0), TICK, 61, (True, True), id="24#10"),
    pytest.param(Claim(), PerTarget(every=timedelta(hours=1)), 0, (False, False), id="24#13"),
]


@pytest.mark.parametrize(("claim", "when", "at", "expected"), CASES)
def test_a_claim_is_taken_by_who_may(
    claim: Claim, when: When, at: float, expected: tuple[bool, bool]
) -> None:
    found = taken(claim, when, at)
    assert (found is not None, found is not None and found.reclaimed) == expected


@pytest.mark.parametrize("late", [pytest.param(70, id="24#11"), pytest.param(120, id="24#11 120")])
def test_a_late_end_leaves_the_later_claim_and_its_success_counts(late: float) -> None:
    second = taken(claimed(0), TICK, 61)
    assert second is not None
    after = ended(second.claim, token=60, at=late)
    assert after.token == second.token == t(121)
    assert after.success == Success(t(late), "1")


@pytest.mark.parametrize(
    "outcome",
    [
        pytest.param(Outcome.FAILED, id="24#12"),
        pytest.param(Outcome.TIMED_OUT, id="24#12 timed out"),
    ],
)
def test_a_failed_end_removes_the_token_and_keeps_the_earlier_success(outcome: Outcome) -> None:
    claim = claimed(0, DONE_AT_0)
    after = ended(claim, token=60, at=10, outcome=outcome)
    assert (after.token, after.success) == (None, Success(NOW, "1"))
    assert (after.failures, after.failed_at) == (1, t(10))


@pytest.mark.parametrize(
    ("is_alive", "expected"),
    [
        pytest.param(True, (False, False), id="24#14 alive"),
        pytest.param(False, (True, True), id="24#14 dead"),
    ],
)
def test_a_run_that_lives_past_its_token_blocks_until_it_dies(
    is_alive: bool, expected: tuple[bool, bool]
) -> None:
    found = taken(claimed(0), TICK, 120, is_alive=is_alive)
    assert (found is not None, found is not None and found.reclaimed) == expected


@pytest.mark.parametrize(
    ("claim", "at", "live"),
    [
        pytest.param(Claim(), 0, False, id="24 live none, 0"),
        pytest.param(claimed(0), 30, True, id="24 live 30"),
        pytest.param(claimed(0), 60, False, id="24 live 60"),
        pytest.param(claimed(0), 61, False, id="24 live 61"),
    ],
)
def test_a_run_is_believed_in_until_its_token(claim: Claim, at: float, live: bool) -> None:
    assert claim.is_in_flight(t(at)) is live


ENDS = [
    pytest.param(Outcome.SUCCEEDED, True, 0, id="23 ran, exit 0"),
    pytest.param(Outcome.FAILED, False, 1, id="23 ran, exit 1"),
    pytest.param(Outcome.TIMED_OUT, False, 1, id="23 timeout"),
    pytest.param(Outcome.REFUSED, False, 0, id="23 skip: refused"),
    pytest.param(Outcome.EXPIRED, False, 0, id="23 skip: expired"),
    pytest.param(Outcome.KILLED, False, 0, id="killed"),
    pytest.param(Outcome.OUTCOME_UNKNOWN, False, 0, id="unknown"),
]


@pytest.mark.parametrize(("outcome", "success", "failures"), ENDS)
def test_only_a_script_that_ran_and_ended_well_is_a_success(
    outcome: Outcome, success: bool, failures: int
) -> None:
    after = ended(claimed(0), token=60, at=10, outcome=outcome)
    assert (after.success is not None, after.failures) == (success, failures)
    assert after.token is None


def test_a_success_ends_a_row_of_failures() -> None:
    failed = ended(claimed(0), token=60, at=10, outcome=Outcome.FAILED)
    assert ended(failed, token=999, at=20).failures == 0


def test_a_claim_is_read_back_as_it_was_stored(tmp_path: Path) -> None:
    claim = Claim(t(60), Success(t(5), "2"), t(1), 3, t(2), t(4))
    ClaimBook(tmp_path / "claims").put("a", claim)
    book = ClaimBook(tmp_path / "claims")
    assert (book.get("a"), book.get("b")) == (claim, Claim())


def test_a_deleted_schedule_is_forgotten_and_an_edited_one_is_not(tmp_path: Path) -> None:
    book = ClaimBook(tmp_path / "claims")
    book.put("kept", claimed(0))
    book.put("gone", claimed(0))
    book.keep_only({"kept", "new"})
    again = ClaimBook(tmp_path / "claims")
    assert (again.get("kept"), again.get("gone")) == (claimed(0), Claim())


def test_a_claim_that_cannot_be_stored_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = ClaimBook(tmp_path / "claims")

    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(state, "write_private", no_space)
    with pytest.raises(OSError, match="No space"):
        book.put("a", claimed(0))
    assert book.get("a") == Claim()


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"a": 1}', b'{"a": {}}'])
def test_a_damaged_book_is_named(tmp_path: Path, data: bytes) -> None:
    state.write_private(tmp_path / "claims", data)
    with pytest.raises(state.StateError, match="damaged"):
        ClaimBook(tmp_path / "claims")
