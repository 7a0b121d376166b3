"""Held commands: order, slots, freeze, kill, refusals, and what a restart makes of them."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from fleet.agent import workspace
from fleet.agent.commands import Command, Outcome
from fleet.agent.gate import Freeze
from fleet.agent.journal import Journal
from fleet.agent.journal_records import Ending
from tests.fleet.agent.bench import Bench
from tests.fleet.agent.make import NOW, command_id, make_command, make_script
from tests.fleet.agent.until import until

HOUR = timedelta(hours=1)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path, slots=2)
    yield made
    made.close()


def noting(folder: Path, number: int = 1, then: str = "true", **fields: Any) -> Command:
    """A script that writes its number into `ran` and does `then`."""
    script = make_script(f"echo {number} >> {folder}/ran\n{then}\n")
    return make_command(number, script=script, **fields)


def ran(folder: Path) -> list[int]:
    path = folder / "ran"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def blocking(folder: Path, number: int) -> Command:
    """A script that runs until `go` exists."""
    return noting(folder, number, f"while [ ! -e {folder}/go ]; do sleep 0.02; done")


def restarted(bench: Bench, folder: Path) -> Bench:
    bench.journal.close()
    again = Bench(folder, expected=True)
    again.work.recover()
    return again


def test_a_command_runs_and_its_result_is_in_the_outbox(bench: Bench, tmp_path: Path) -> None:
    bench.work.accept(noting(tmp_path))
    result = bench.result(command_id())
    assert (result["outcome"], result["exit_code"], ran(tmp_path)) == ("succeeded", 0, [1])
    entry = bench.journal.entry(command_id())
    assert entry is not None
    assert entry.finished == Ending(Outcome.SUCCEEDED, 0)


def test_a_command_that_comes_twice_runs_once(bench: Bench, tmp_path: Path) -> None:
    command = blocking(tmp_path, 1)
    assert bench.work.accept(command)
    assert bench.work.accept(command)
    bench.work.step()
    until(lambda: ran(tmp_path) == [1], what="the start")
    assert bench.work.accept(command)
    bench.work.step()
    assert bench.work.holding() == [command_id(1)]
    (tmp_path / "go").touch()
    bench.result(command_id(1))
    assert ran(tmp_path) == [1]


def test_no_more_run_than_there_are_slots(bench: Bench, tmp_path: Path) -> None:
    for number in (1, 2, 3):
        bench.work.accept(blocking(tmp_path, number))
    bench.work.step()
    until(lambda: len(ran(tmp_path)) == 2, what="two starts")
    bench.work.step()
    assert bench.work.running() == 2
    assert len(bench.work.holding()) == 3
    (tmp_path / "go").touch()
    bench.result(command_id(3))
    assert sorted(ran(tmp_path)) == [1, 2, 3]


def test_a_queued_command_whose_deadline_passes_expires_unrun(bench: Bench, tmp_path: Path) -> None:
    for number in (1, 2, 3):
        bench.work.accept(blocking(tmp_path, number))
    bench.work.step()
    until(lambda: len(ran(tmp_path)) == 2, what="two starts")
    bench.advance(3601)
    bench.work.step()
    assert bench.results()[command_id(3)]["outcome"] == "expired"
    (tmp_path / "go").touch()
    bench.result(command_id(2))
    assert 3 not in ran(tmp_path)


def test_the_one_whose_time_comes_first_starts_first(tmp_path: Path) -> None:
    bench = Bench(tmp_path, slots=1)
    bench.work.accept(noting(tmp_path, 1, start_after=NOW + timedelta(seconds=20)))
    bench.work.accept(noting(tmp_path, 2, start_after=NOW + timedelta(seconds=10)))
    bench.advance(30)
    bench.result(command_id(1))
    assert ran(tmp_path) == [2, 1]
    bench.close()


def test_jitter_is_waited_for_by_the_servers_time(bench: Bench, tmp_path: Path) -> None:
    bench.work.accept(noting(tmp_path, start_after=NOW + timedelta(seconds=4)))
    assert bench.work.step() == pytest.approx(4.0)
    assert bench.work.holding() == [command_id()]
    bench.advance(4)
    assert bench.result(command_id())["outcome"] == "succeeded"


def test_a_freeze_holds_what_has_not_started_until_the_thaw(bench: Bench, tmp_path: Path) -> None:
    bench.gate.set_freeze(Freeze(frozen=True))
    bench.work.accept(noting(tmp_path))
    bench.work.step()
    assert (bench.work.running(), bench.work.is_stuck()) == (0, True)
    bench.gate.set_freeze(Freeze())
    assert bench.result(command_id())["outcome"] == "succeeded"


def test_a_freeze_does_not_stop_what_runs(bench: Bench, tmp_path: Path) -> None:
    bench.work.accept(blocking(tmp_path, 1))
    bench.work.step()
    until(lambda: ran(tmp_path) == [1], what="the start")
    bench.gate.set_freeze(Freeze(frozen=True))
    (tmp_path / "go").touch()
    assert bench.result(command_id())["outcome"] == "succeeded"


def test_an_override_passes_the_freeze(bench: Bench, tmp_path: Path) -> None:
    bench.gate.set_freeze(Freeze(frozen=True))
    bench.work.accept(noting(tmp_path, override_freeze=True))
    assert bench.result(command_id())["outcome"] == "succeeded"


def test_a_freeze_between_the_queue_and_the_start_still_holds(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = workspace.workspace

    def freeze_meanwhile(command: Command, attempt: int) -> object:
        bench.gate.set_freeze(Freeze(frozen=True))
        return made(command, attempt)

    monkeypatch.setattr("fleet.agent.attempts.workspace", freeze_meanwhile)
    bench.work.accept(noting(tmp_path))
    bench.work.step()
    until(lambda: bench.gate.freeze.frozen, what="the freeze")
    assert bench.gate.wait_for(lambda: bool(ran(tmp_path)), 0.3) is False
    entry = bench.journal.entry(command_id())
    assert entry is not None
    assert entry.attempt == 0


@pytest.mark.parametrize("when", ["before it came", "in jitter", "frozen"])
def test_a_killed_command_never_starts(bench: Bench, tmp_path: Path, when: str) -> None:
    command = noting(tmp_path, start_after=NOW + HOUR / 2 if when == "in jitter" else None)
    if when == "before it came":
        bench.gate.kill([command.id])
    if when == "frozen":
        bench.gate.set_freeze(Freeze(frozen=True))
    bench.work.accept(command)
    if when != "before it came":
        bench.work.step()
        bench.gate.kill([command.id])
    result = bench.result(command.id)
    assert (result["outcome"], result["exit_code"]) == ("killed", -1)
    assert (ran(tmp_path), result["started_at"]) == ([], None)


def test_a_missing_shell_is_refused_and_no_start_is_reported(bench: Bench) -> None:
    bench.work.accept(make_command(script=make_script(shell="cmd")))
    result = bench.result(command_id())
    assert result["outcome"] == "refused"
    assert "no shell 'cmd'" in str(result["reason"])
    assert bench.work.started() == []


def test_a_journal_that_cannot_be_written_starts_nothing(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.work.accept(noting(tmp_path))

    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bench.journal, "started", no_space)
    result = bench.result(command_id())
    assert (result["outcome"], ran(tmp_path)) == ("refused", [])
    assert "journal cannot be written" in str(result["reason"])


def test_a_command_that_cannot_be_journalled_is_not_taken(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bench.journal, "received", no_space)
    assert bench.work.accept(noting(tmp_path)) is False
    assert bench.work.holding() == []


def test_a_command_for_which_there_is_no_thread_waits_and_is_tried_again(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_thread(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    bench.work.accept(noting(tmp_path))
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(threading.Thread, "start", no_thread)
        bench.work.step()
    assert (bench.work.running(), bench.work.holding()) == (0, [command_id()])
    assert bench.result(command_id())["outcome"] == "succeeded"
    assert ran(tmp_path) == [1]


def test_a_process_that_cannot_be_started_is_refused(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_process(*_: object, **__: object) -> None:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("fleet.agent.attempts.Attempt.__init__", no_process)
    bench.work.accept(noting(tmp_path))
    result = bench.result(command_id())
    assert (result["outcome"], result["started_at"], ran(tmp_path)) == ("refused", None, [])


def test_a_fault_of_the_agent_is_an_unknown_outcome(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("fleet.agent.attempts.CommandRun.perform", fault)
    bench.work.accept(make_command())
    result = bench.result(command_id())
    assert result["outcome"] == "outcome_unknown"
    assert bench.work.holding() == []


def test_a_refusal_is_answered_for_and_journalled(bench: Bench) -> None:
    bench.work.refuse(command_id(7), Outcome.REFUSED, "the signature is wrong")
    assert bench.results()[command_id(7)]["reason"] == "the signature is wrong"
    entry = bench.journal.entry(command_id(7))
    assert entry is not None
    assert entry.finished == Ending(Outcome.REFUSED)


def test_when_too_many_are_held_the_next_is_not_taken(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fleet.agent.work.MAX_HELD", 2)
    assert bench.work.accept(make_command(1, start_after=NOW + HOUR))
    assert bench.work.accept(make_command(2, start_after=NOW + HOUR))
    assert bench.work.accept(make_command(3, start_after=NOW + HOUR)) is False
    assert bench.journal.entry(command_id(3)) is None


def test_starts_are_reported_until_the_server_has_heard_of_them(
    bench: Bench, tmp_path: Path
) -> None:
    bench.work.accept(noting(tmp_path))
    bench.result(command_id())
    events = bench.work.started()
    assert [(event.command, event.attempt) for event in events] == [(command_id(), 1)]
    assert events[0].started_at == NOW
    bench.work.told(events)
    assert bench.work.started() == []


def test_after_a_crash_during_a_script_its_outcome_is_unknown(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.journal.received(make_command())
    bench.journal.started(command_id(), 1)
    again = restarted(bench, tmp_path)
    result = again.results()[command_id()]
    assert (result["outcome"], result["attempt"]) == ("outcome_unknown", 1)
    assert again.journal.interrupted() == ()
    again.close()


def test_after_a_crash_in_the_pause_the_last_attempts_end_is_reported(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.journal.received(make_command())
    bench.journal.started(command_id(), 1)
    bench.journal.attempt_ended(command_id(), Ending(Outcome.FAILED, 9))
    again = restarted(bench, tmp_path)
    result = again.results()[command_id()]
    assert (result["outcome"], result["exit_code"], result["retries"]) == ("failed", 9, 0)
    again.close()


def test_after_a_crash_with_the_result_stored_that_result_stands(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.work.accept(noting(tmp_path))
    stored = bench.result(command_id())
    bench.journal.close()
    # As if the agent had died between the outbox and the journal's last line.
    lines = (tmp_path / "journal").read_bytes().splitlines(keepends=True)
    (tmp_path / "journal").write_bytes(b"".join(lines[:-1]))
    again = Bench(tmp_path, expected=True)
    again.work.recover()
    assert again.results() == {command_id(): stored}
    entry = again.journal.entry(command_id())
    assert entry is not None
    assert entry.finished == Ending(Outcome.SUCCEEDED, 0)
    again.close()


def test_a_lost_result_is_told_again_from_the_journal(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.work.accept(noting(tmp_path, 1, "exit 4"))
    bench.result(command_id())
    file = next((tmp_path / "outbox").glob("*.json"))
    file.write_bytes(b"rubbish")
    again = restarted(bench, tmp_path)
    result = again.results()[command_id()]
    assert (result["outcome"], result["exit_code"]) == ("failed", 4)
    assert "lost" in str(result["reason"])
    again.close()


def test_a_finished_command_that_comes_again_is_told_again_and_not_run(
    bench: Bench, tmp_path: Path
) -> None:
    bench.work.accept(noting(tmp_path))
    bench.result(command_id())
    bench.outbox.settle(command_id(), "stored")
    entry = bench.journal.entry(command_id())
    assert entry is not None
    bench.work.report_again(entry)
    assert bench.results()[command_id()]["outcome"] == "succeeded"
    assert ran(tmp_path) == [1]


def test_an_agent_that_stops_starts_nothing_and_keeps_no_result(
    bench: Bench, tmp_path: Path
) -> None:
    bench.work.accept(noting(tmp_path))
    bench.gate.stop()
    bench.work.step()
    assert (ran(tmp_path), bench.results()) == ([], {})


def test_the_journal_refuses_to_end_what_it_does_not_know(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal", expected=False)
    with pytest.raises(KeyError):
        journal.finished(command_id(), Ending(Outcome.FAILED, 1))
    assert (tmp_path / "journal").read_bytes() == b""
    journal.close()
