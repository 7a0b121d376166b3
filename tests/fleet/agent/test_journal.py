"""The journal: no start without a record, no record started twice, and honest after damage."""

import os
import resource
import stat
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from fleet.agent.commands import Outcome
from fleet.agent.journal import KEPT_AFTER_DEADLINE, AlreadyStartedError, Journal
from fleet.agent.journal_records import Ending, Record, encode
from fleet.agent.state import StateError
from tests.fleet.agent.make import NOW, command_id, make_command

OK = Ending(Outcome.SUCCEEDED, 0)
LATER = NOW + timedelta(hours=1) + KEPT_AFTER_DEADLINE + timedelta(seconds=1)


OPENED: list[Journal] = []


@pytest.fixture(autouse=True)
def _close_journals() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().close()


def open_journal(folder: Path, *, expected: bool = False) -> Journal:
    OPENED.append(Journal(folder / "journal", expected=expected))
    return OPENED[-1]


def reopened(journal: Journal, folder: Path) -> Journal:
    journal.close()
    return open_journal(folder, expected=True)


def test_a_start_is_known_after_a_restart(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    journal.received(make_command())
    journal.started(command_id(), 1)
    entry = reopened(journal, tmp_path).entry(command_id())
    assert entry is not None
    assert (entry.attempt, entry.finished, entry.is_interrupted) == (1, None, True)


def test_a_start_is_on_the_disk_before_started_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = open_journal(tmp_path)
    journal.received(make_command())
    synced: list[bytes] = []
    real = os.fsync

    def fsync(handle: int) -> None:
        synced.append((tmp_path / "journal").read_bytes())
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    journal.started(command_id(), 1)
    assert len(synced) == 1
    assert b'"started"' in synced[0]


@pytest.mark.parametrize("attempt", [1, 2])
def test_an_attempt_never_starts_twice(tmp_path: Path, attempt: int) -> None:
    journal = open_journal(tmp_path)
    journal.received(make_command())
    journal.started(command_id(), 2)
    before = (tmp_path / "journal").read_bytes()
    with pytest.raises(AlreadyStartedError):
        reopened(journal, tmp_path).started(command_id(), attempt)
    assert (tmp_path / "journal").read_bytes() == before


def test_a_finished_command_never_starts_again(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    journal.received(make_command())
    journal.finished(command_id(), Ending(Outcome.EXPIRED))
    with pytest.raises(AlreadyStartedError):
        journal.started(command_id(), 1)


def test_a_received_command_may_be_received_again(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    journal.received(make_command())
    journal = reopened(journal, tmp_path)
    journal.received(make_command())
    journal.started(command_id(), 1)
    assert len(journal.interrupted()) == 1


def test_receiving_again_does_not_forget_a_start(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    journal.received(make_command())
    journal.started(command_id(), 1)
    journal.received(make_command())
    with pytest.raises(AlreadyStartedError):
        journal.started(command_id(), 1)


def test_the_end_of_an_attempt_is_known_until_the_next_starts(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    journal.received(make_command())
    journal.started(command_id(), 1)
    journal.attempt_ended(command_id(), Ending(Outcome.FAILED, 3))
    journal = reopened(journal, tmp_path)
    assert journal.interrupted()[0].attempt_ended == Ending(Outcome.FAILED, 3)
    journal.started(command_id(), 2)
    assert reopened(journal, tmp_path).interrupted()[0].attempt_ended is None


def test_only_started_commands_without_an_end_are_interrupted(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    for number in (1, 2, 3):
        journal.received(make_command(number))
    journal.started(command_id(1), 1)
    journal.started(command_id(2), 1)
    journal.finished(command_id(2), OK)
    found = reopened(journal, tmp_path).interrupted()
    assert [entry.command for entry in found] == [command_id(1)]


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_torn_last_line_is_dropped_and_the_next_is_not_glued_to_it(
    tmp_path: Path, cut: int
) -> None:
    journal = open_journal(tmp_path)
    journal.received(make_command())
    journal.started(command_id(), 1)
    journal.close()
    path = tmp_path / "journal"
    path.write_bytes(path.read_bytes()[:-cut])
    journal = open_journal(tmp_path, expected=True)
    assert journal.interrupted() == ()
    assert not journal.may_have_forgotten(make_command(2))
    journal.started(command_id(), 1)
    assert len(reopened(journal, tmp_path).interrupted()) == 1


def test_a_changed_line_is_damage_and_older_unknown_commands_are_suspect(
    tmp_path: Path,
) -> None:
    journal = open_journal(tmp_path)
    for number in (1, 2):
        journal.received(make_command(number))
    journal.close()
    path = tmp_path / "journal"
    path.write_bytes(path.read_bytes().replace(b'"seq":1', b'"seq":7'))
    journal = open_journal(tmp_path, expected=True)
    assert journal.entry(command_id(1)) is None
    assert journal.entry(command_id(2)) is not None
    assert journal.may_have_forgotten(make_command(1)) is True


def test_after_damage_only_newer_commands_are_beyond_doubt(tmp_path: Path) -> None:
    journal = open_journal(tmp_path, expected=True)
    assert journal.may_have_forgotten(make_command()) is True
    journal.settle(NOW)
    journal = reopened(journal, tmp_path)
    assert journal.may_have_forgotten(make_command(issued_at=NOW)) is True
    newer = make_command(issued_at=NOW + timedelta(seconds=1))
    assert journal.may_have_forgotten(newer) is False


def test_a_first_journal_suspects_nothing(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    journal.settle(NOW)
    assert journal.may_have_forgotten(make_command()) is False
    assert (tmp_path / "journal").read_bytes() == b""


def test_a_full_disk_starts_nothing_and_leaves_no_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = open_journal(tmp_path)
    journal.received(make_command())
    whole = (tmp_path / "journal").read_bytes()

    def no_space(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", no_space)
        with pytest.raises(OSError, match="No space"):
            journal.started(command_id(), 1)
    assert journal.interrupted() == ()
    journal.received(make_command(2))
    assert (tmp_path / "journal").read_bytes().startswith(whole)
    assert b"started" not in (tmp_path / "journal").read_bytes()


def test_half_a_record_on_a_full_disk_starts_nothing_and_is_removed(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    journal.received(make_command())
    path = tmp_path / "journal"
    whole = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 5, hard))
    try:
        with pytest.raises(OSError, match="disk is full"):
            journal.started(command_id(), 1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert len(path.read_bytes()) == len(whole) + 5
    assert journal.interrupted() == ()
    journal.started(command_id(), 1)
    assert reopened(journal, tmp_path).may_have_forgotten(make_command(2)) is False


def test_compacting_forgets_what_is_long_past_and_refuses_its_replay(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    journal.received(make_command(5))
    journal.finished(command_id(5), OK)
    journal.received(make_command(6, deadline_at=LATER))
    journal.compact(LATER)
    journal = reopened(journal, tmp_path)
    assert journal.entry(command_id(5)) is None
    assert journal.entry(command_id(6)) is not None
    assert journal.may_have_forgotten(make_command(5)) is True
    assert journal.may_have_forgotten(make_command(7)) is False
    assert journal.may_have_forgotten(make_command(1, server_epoch=2)) is False


def test_compacting_keeps_the_starts_of_what_it_keeps(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    journal.received(make_command(1))
    journal.received(make_command(2, deadline_at=LATER))
    journal.started(command_id(2), 1)
    journal.attempt_ended(command_id(2), Ending(Outcome.TIMED_OUT, -1))
    journal.received(make_command(3, deadline_at=LATER))
    journal.started(command_id(3), 1)
    journal.finished(command_id(3), OK)
    before = {number: journal.entry(command_id(number)) for number in (2, 3)}
    journal.compact(LATER)
    journal = reopened(journal, tmp_path)
    assert {number: journal.entry(command_id(number)) for number in (2, 3)} == before


def test_an_interrupted_command_is_kept_however_old(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    journal.received(make_command())
    journal.started(command_id(), 1)
    journal.compact(LATER + timedelta(days=400))
    assert len(reopened(journal, tmp_path).interrupted()) == 1


def test_after_compacting_the_journal_goes_on(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    journal.received(make_command(1))
    journal.compact(LATER)
    journal.received(make_command(2))
    journal.started(command_id(2), 1)
    assert len(reopened(journal, tmp_path).interrupted()) == 1


def test_the_journal_is_private_and_refuses_to_be_read_by_others(tmp_path: Path) -> None:
    open_journal(tmp_path)
    path = tmp_path / "journal"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    with pytest.raises(StateError, match="chmod 600"):
        open_journal(tmp_path)


NONSENSE: dict[str, Record] = {
    "unknown kind": {"s": "dreamt", "c": command_id()},
    "no kind": {"c": command_id()},
    "unknown command": {"s": "started", "c": command_id(9), "n": 1},
    "bad attempt": {"s": "started", "c": command_id(), "n": "one"},
    "bad outcome": {"s": "finished", "c": command_id(), "outcome": "fine", "exit": 0},
    "bad exit": {"s": "finished", "c": command_id(), "outcome": "failed", "exit": "x"},
    "bad time": {"s": "suspect", "until": "yesterday"},
}


@pytest.mark.parametrize("name", NONSENSE)
def test_a_record_that_makes_no_sense_is_damage(tmp_path: Path, name: str) -> None:
    journal = open_journal(tmp_path)
    journal.received(make_command())
    with (tmp_path / "journal").open("ab") as file:
        file.write(encode(NONSENSE[name]))
    assert reopened(journal, tmp_path).may_have_forgotten(make_command(2)) is True
