"""Retries inside one command: the notes, the sequences, and kills, stops and deadlines between."""

from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.agent.attempts import is_retryable, retry_note
from fleet.agent.commands import Command, Outcome, Retry
from fleet.agent.gate import Freeze
from fleet.agent.runner import AttemptEnd
from tests.fleet.agent.bench import Bench
from tests.fleet.agent.make import command_id, make_command, make_script
from tests.fleet.agent.until import until


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.close()


RETRYABLE = [
    pytest.param(AttemptEnd(Outcome.SUCCEEDED, 0), False, id="23#6"),
    pytest.param(AttemptEnd(Outcome.FAILED, 1), True, id="23#7 exit 1"),
    pytest.param(AttemptEnd(Outcome.FAILED, -1), True, id="23#7 exit -1"),
    pytest.param(AttemptEnd(Outcome.TIMED_OUT, -1), True, id="23#8"),
    pytest.param(AttemptEnd(Outcome.KILLED, -1), False, id="23#9"),
    pytest.param(AttemptEnd(Outcome.OUTCOME_UNKNOWN, -1), False, id="agent stopped"),
    pytest.param(AttemptEnd(Outcome.REFUSED), False, id="refused"),
]


@pytest.mark.parametrize(("end", "retryable"), RETRYABLE)
def test_only_failures_and_timeouts_are_tried_again(end: AttemptEnd, retryable: bool) -> None:
    assert is_retryable(end) is retryable


NOTES = [
    pytest.param(0, Outcome.SUCCEEDED, "", id="23#10 exit 0"),
    pytest.param(0, Outcome.FAILED, "", id="23#10 exit 1"),
    pytest.param(1, Outcome.SUCCEEDED, "succeeded after 1 retry", id="23#11"),
    pytest.param(2, Outcome.SUCCEEDED, "succeeded after 2 retries", id="23#12"),
    pytest.param(3, Outcome.FAILED, "failed after 3 retries exhausted", id="23#13"),
    pytest.param(2, Outcome.KILLED, "stopped by remote kill after 2 retries", id="23#14"),
]


@pytest.mark.parametrize(("retries", "outcome", "note"), NOTES)
def test_the_note_says_how_many_retries_there_were(
    retries: int, outcome: Outcome, note: str
) -> None:
    assert retry_note(retries, outcome) == note


def counting(
    folder: Path, *steps: str, times: int = 0, backoff_s: int = 0, timeout_s: int = 60
) -> Command:
    """A script whose n-th run does the n-th step and notes itself in `runs`."""
    lines = [f"echo run >> {folder}/runs", f"n=$(wc -l < {folder}/runs)"]
    lines += [f'[ "$n" -eq {number} ] && {{ {step}; }}' for number, step in enumerate(steps, 1)]
    script = make_script("\n".join([*lines, "exit 0\n"]), timeout_s=timeout_s)
    return make_command(script=script, retry=Retry(times, backoff_s))


def runs(folder: Path) -> int:
    path = folder / "runs"
    return len(path.read_text().splitlines()) if path.exists() else 0


def stdout(result: dict[str, object]) -> bytes:
    output = result["output"]
    assert isinstance(output, dict)
    return b64decode(output["stdout"]["head"])


SEQUENCES = [
    pytest.param(0, ["exit 1"], ("failed", 1, 0, ""), id="23#15"),
    pytest.param(3, ["exit 0"], ("succeeded", 0, 0, ""), id="23#16"),
    pytest.param(
        3, ["exit 7", "exit 0"], ("succeeded", 0, 1, "succeeded after 1 retry"),
        id="23#17",
    ),
    pytest.param(
        3, ["exit 1", "exit 2", "exit 3", "exit 4", "exit 0"],
        ("failed", 4, 3, "failed after 3 retries exhausted"), id="23#18",
    ),
    pytest.param(
        3, ["sleep 60", "exit 0"], ("succeeded", 0, 1, "succeeded after 1 retry"),
        id="23#19",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("times", "steps", "expected"), SEQUENCES)
def test_a_sequence_of_attempts_gives_one_result(
    bench: Bench, tmp_path: Path, times: int, steps: list[str], expected: tuple[object, ...]
) -> None:
    bench.work.accept(counting(tmp_path, *steps, times=times, timeout_s=1))
    result = bench.result(command_id())
    found = (result["outcome"], result["exit_code"], result["retries"], result["note"])
    assert found == expected
    assert result["attempt"] == result["retries"] + 1  # type: ignore[operator]  # JSON
    assert runs(tmp_path) == result["attempt"]


@pytest.mark.parametrize("times", [pytest.param(3, id="23#20")])
def test_a_killed_script_is_not_tried_again(bench: Bench, tmp_path: Path, times: int) -> None:
    bench.work.accept(counting(tmp_path, "sleep 600", times=times))
    bench.work.step()
    until(lambda: runs(tmp_path) == 1, what="the first attempt")
    bench.gate.kill([command_id()])
    result = bench.result(command_id())
    assert (result["outcome"], result["exit_code"]) == ("killed", -1)
    assert (result["retries"], result["note"]) == (0, "")
    assert (result["reason"], runs(tmp_path)) == ("killed on request", 1)


def in_backoff(bench: Bench, folder: Path, times: int = 3) -> None:
    """Bring a command with half an hour's pause into that pause after its first failure."""
    bench.work.accept(counting(folder, "echo first; exit 5", times=times, backoff_s=1800))
    bench.work.step()

    def paused() -> bool:
        entry = bench.journal.entry(command_id())
        return entry is not None and entry.attempt_ended is not None

    until(paused, what="the pause before the retry")


@pytest.mark.parametrize("times", [pytest.param(3, id="23#21")])
def test_a_kill_during_the_pause_ends_the_command_without_output(
    bench: Bench, tmp_path: Path, times: int
) -> None:
    in_backoff(bench, tmp_path, times)
    bench.gate.kill([command_id()])
    result = bench.result(command_id())
    assert (result["outcome"], result["exit_code"], result["retries"]) == ("killed", -1, 1)
    assert result["note"] == "stopped by remote kill after 1 retry"
    assert (stdout(result), runs(tmp_path)) == (b"", 1)


def test_the_pause_lasts_as_long_as_the_policy_says(bench: Bench, tmp_path: Path) -> None:
    in_backoff(bench, tmp_path)
    bench.advance(1799)
    assert bench.gate.wait_for(lambda: runs(tmp_path) > 1, 0.3) is False
    bench.advance(2)
    result = bench.result(command_id())
    assert (result["outcome"], result["retries"], runs(tmp_path)) == ("succeeded", 1, 2)


def test_a_retry_whose_deadline_has_passed_does_not_start(bench: Bench, tmp_path: Path) -> None:
    in_backoff(bench, tmp_path)
    bench.advance(3601)
    result = bench.result(command_id())
    assert (result["outcome"], result["exit_code"], result["retries"]) == ("failed", 5, 0)
    assert str(result["reason"]).startswith("not tried again: the deadline 2026-03-02T10:00:00")
    assert (stdout(result), result["note"], runs(tmp_path)) == (b"first\n", "", 1)


def test_a_freeze_during_the_pause_holds_the_retry_until_the_thaw(
    bench: Bench, tmp_path: Path
) -> None:
    in_backoff(bench, tmp_path)
    bench.gate.set_freeze(Freeze(frozen=True))
    bench.advance(1900)
    assert bench.gate.wait_for(lambda: runs(tmp_path) > 1, 0.3) is False
    bench.gate.set_freeze(Freeze())
    assert bench.result(command_id())["outcome"] == "succeeded"


def test_an_agent_that_stops_during_the_pause_reports_the_last_attempt(
    bench: Bench, tmp_path: Path
) -> None:
    in_backoff(bench, tmp_path)
    bench.gate.stop()
    result = bench.result(command_id())
    assert (result["outcome"], result["exit_code"]) == ("failed", 5)
    assert result["reason"] == "not tried again: the agent is stopping"


def test_times_are_the_servers_and_the_duration_is_never_negative(
    bench: Bench, tmp_path: Path
) -> None:
    in_backoff(bench, tmp_path)
    bench.advance(1801)
    result = bench.result(command_id())
    assert result["started_at"] == "2026-03-02T09:00:00+00:00"
    assert result["finished_at"] == "2026-03-02T09:30:01+00:00"
    assert result["duration_ms"] == 1_801_000


def test_each_attempt_is_reported_as_a_start_of_its_own(bench: Bench, tmp_path: Path) -> None:
    bench.work.accept(counting(tmp_path, "exit 1", "exit 0", times=1))
    bench.result(command_id())
    assert [event.attempt for event in bench.work.started()] == [1, 2]


def test_the_output_is_the_last_attempts(bench: Bench, tmp_path: Path) -> None:
    bench.work.accept(counting(tmp_path, "echo one; exit 1", "echo two", times=1))
    assert stdout(bench.result(command_id())) == b"two\n"
