"""Schedules that the agent fires itself: with and without a network, through restarts."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fleet.agent import state
from fleet.agent.bundle import LocalSchedule
from fleet.agent.gate import UNREADABLE, Freeze
from fleet.agent.last_word import LastWord, LastWordFile
from fleet.agent.local_schedules import LocalSchedules
from fleet.agent.results import Result
from tests.fleet.agent.bench import Bench
from tests.fleet.agent.locally import Document, at, job_document, parts, schedule_document
from tests.fleet.agent.make import NOW, PINNED, command_id, make_command
from tests.fleet.agent.until import until

MINUTELY = {"calendar": {"cron": "* * * * *"}}


class Pc:
    """A PC's local schedules on a workbench."""

    def __init__(self, folder: Path, *, expected: bool = False) -> None:
        self.folder = folder
        self.bench = Bench(folder, expected=expected)
        self.local = LocalSchedules(
            folder,
            pinned=lambda: PINNED,
            work=self.bench.work,
            gate=self.bench.gate,
            clock=self.bench.clock,
            local_zone=lambda: "UTC",
        )

    def adopt(self, *schedules: Document, script: str = "", etag: str = "e1") -> None:
        text = script or f"echo ran >> {self.folder}/ran\n"
        pairs = [(schedule, job_document(text)) for schedule in schedules]
        self.local.adopt(parts(*pairs, etag=etag, issued_at=NOW))

    def minute(self, count: int = 1) -> None:
        """Let minutes pass, look in each, and let everything that started end."""
        for _ in range(count):
            self.bench.advance(60)
            self.look()

    def look(self) -> None:
        self.local.step()
        self.bench.work.step()
        until(lambda: not self.bench.work.running(), what="the runs to end")

    @property
    def runs(self) -> int:
        path = self.folder / "ran"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def runs_after(self, seconds: float) -> int:
        """Move the clock, then count."""
        self.bench.advance(seconds)
        return self.runs

    def restart(self) -> "Pc":
        """The agent starts anew at the same moment of the server's time."""
        self.bench.journal.close()
        again = Pc(self.folder, expected=True)
        again.bench.steady.at = self.bench.steady.at
        again.bench.work.recover()
        return again


@pytest.fixture
def pc(tmp_path: Path) -> Iterator[Pc]:
    made = Pc(tmp_path)
    yield made
    made.bench.close()


def test_a_schedule_fires_at_once_when_it_comes_and_then_as_it_says(pc: Pc) -> None:
    pc.adopt(schedule_document())
    pc.look()
    assert pc.runs == 1
    pc.minute(59)
    assert pc.runs == 1
    pc.minute()
    assert pc.runs == 2


def test_within_a_minute_it_looks_once(pc: Pc) -> None:
    pc.adopt(schedule_document(when=MINUTELY))
    pc.look()
    pc.bench.advance(60)
    for _ in range(5):
        pc.look()
        pc.bench.advance(5)
    assert pc.runs == 1


def test_the_result_says_what_the_server_needs_to_know_of_it(pc: Pc) -> None:
    pc.adopt(schedule_document())
    pc.look()
    (result,) = pc.bench.results().values()
    local = result["local"]
    assert isinstance(local, dict)
    assert set(local) == {"schedule", "job", "version", "execute_sha256", "nominal_at"}
    assert (local["schedule"], local["job"], local["version"]) == (
        "inventory-1h", "inventory", "1.0.0",
    )  # fmt: skip
    assert (local["nominal_at"], result["outcome"]) == (NOW.isoformat(), "succeeded")
    assert len(str(local["execute_sha256"])) == 64
    assert [event.local for event in pc.bench.work.started()] == [local]


def test_a_run_of_the_agents_own_is_not_told_as_the_servers(pc: Pc) -> None:
    pc.adopt(schedule_document(), script=f"while [ ! -e {pc.folder}/go ]; do sleep 0.02; done\n")
    pc.local.step()
    pc.bench.work.step()
    assert (pc.bench.work.running(), pc.bench.work.holding()) == (1, [])
    (pc.folder / "go").touch()


def test_a_running_fire_blocks_the_next_and_its_time_waits(pc: Pc) -> None:
    go = pc.folder / "go"
    text = f"echo ran >> {pc.folder}/ran; while [ ! -e {go} ]; do sleep 0.02; done\n"
    pc.adopt(schedule_document(when=MINUTELY), script=text)
    pc.look()
    pc.bench.advance(60)
    pc.local.step()
    pc.bench.work.step()
    until(lambda: pc.runs == 1, what="the first run")
    pc.bench.advance(60)
    pc.local.step()
    pc.bench.work.step()
    assert (pc.runs, pc.bench.work.running()) == (1, 1)
    go.touch()
    until(lambda: not pc.bench.work.running(), what="the end of the first")
    pc.minute()
    assert pc.runs == 2


def test_a_failing_job_is_tried_less_and_less_often(pc: Pc) -> None:
    pc.adopt(schedule_document(), script=f"echo ran >> {pc.folder}/ran; exit 1\n")
    pc.look()
    seen = []
    for minute in range(1, 31):
        before = pc.runs
        pc.minute()
        if pc.runs > before:
            seen.append(minute)
    # The muting window is two minutes: it doubles from the failure on.
    assert seen == [2, 6, 14, 30]


def test_parameters_and_retries_come_along(pc: Pc) -> None:
    job = job_document(f'echo "$KANADE_P_NAME" >> {pc.folder}/ran; exit 1\n')
    job["execute"]["params"] = {"NAME": {"default": "none"}}
    schedule = schedule_document(
        params={"NAME": "here"}, on_failure={"retry": {"max": 1, "backoff": "1s"}}
    )
    pc.local.adopt(parts((schedule, job)))
    pc.local.step()
    pc.bench.work.step()
    until(lambda: pc.runs == 1, what="the first attempt")
    until(lambda: pc.runs_after(1) == 2, what="the second")
    until(lambda: not pc.bench.work.running(), what="the end")
    (result,) = pc.bench.results().values()
    assert (result["retries"], result["note"]) == (1, "failed after 1 retry exhausted")
    assert (pc.folder / "ran").read_text() == "here\nhere\n"


def test_a_freeze_holds_also_without_a_network(pc: Pc) -> None:
    pc.bench.gate.set_freeze(Freeze(frozen=True, ends_at=at(minutes=3)))
    pc.adopt(schedule_document())
    pc.look()
    pc.minute(2)
    assert pc.runs == 0
    pc.minute()
    assert pc.runs == 1


@pytest.mark.parametrize("reason", ["revoked", "another machine holds this identity"])
def test_an_agent_that_the_server_refuses_fires_nothing(pc: Pc, reason: str) -> None:
    pc.bench.gate.hold(reason)
    pc.adopt(schedule_document())
    pc.look()
    assert pc.runs == 0


def test_a_success_is_remembered_through_a_restart(pc: Pc) -> None:
    pc.adopt(schedule_document(when={"per_pc": "once"}))
    pc.look()
    again = pc.restart()
    again.look()
    again.minute(3)
    assert (again.runs, again.local.etag) == (1, "e1")
    again.bench.close()


def test_a_time_that_fired_does_not_fire_again_after_a_restart(pc: Pc) -> None:
    pc.adopt(schedule_document(when=MINUTELY))
    pc.look()
    pc.minute()
    again = pc.restart()
    again.look()
    assert again.runs == 1
    again.minute()
    assert again.runs == 2
    again.bench.close()


def test_a_run_that_died_with_the_agent_blocks_until_nobody_believes_in_it(pc: Pc) -> None:
    pc.adopt(schedule_document())
    pc.local.step()
    # Taken, and the agent dies before the script starts.
    again = pc.restart()
    again.look()
    assert again.runs == 0
    # Half a minute for the run and a minute of slack.
    again.minute()
    assert again.runs == 0
    again.minute()
    assert again.runs == 1
    again.bench.close()


def test_what_a_crash_left_of_a_local_run_is_reported_with_its_schedule(pc: Pc) -> None:
    pc.adopt(schedule_document())
    pc.local.step()
    (command,) = pc.bench.work._queue.values()
    pc.bench.journal.started(command.id, 1)
    again = pc.restart()
    result = again.bench.results()[command.id]
    assert (result["outcome"], result["local"]) == ("outcome_unknown", command.local)
    again.bench.close()


def test_a_deleted_schedule_fires_no_more_and_is_forgotten(pc: Pc) -> None:
    pc.adopt(schedule_document(when={"per_pc": "once"}))
    pc.look()
    pc.local.adopt(parts((None, None), etag="e2"))
    pc.minute(2)
    assert (pc.runs, pc.local.etag) == (1, "e2")
    pc.adopt(schedule_document(when={"per_pc": "once"}), etag="e3")
    pc.look()
    assert pc.runs == 2


def test_an_edited_schedule_keeps_what_succeeded(pc: Pc) -> None:
    pc.adopt(schedule_document(when={"per_pc": "once"}))
    pc.look()
    pc.adopt(schedule_document(when={"per_pc": "once"}, description="new"), etag="e2")
    pc.minute(3)
    assert pc.runs == 1


def test_a_bundle_that_is_not_whole_keeps_the_schedules_that_are_here(pc: Pc) -> None:
    pc.adopt(schedule_document(when=MINUTELY))
    pc.look()
    pc.local.adopt(["rubbish"])
    pc.minute()
    assert (pc.runs, pc.local.etag) == (1, "e1")


def test_one_schedule_that_fails_does_not_stop_the_others(
    pc: Pc, monkeypatch: pytest.MonkeyPatch
) -> None:
    pc.adopt(schedule_document(id="bad"), schedule_document(id="good"))
    real = pc.local._look_at

    def look_at(schedule: LocalSchedule, *rest: Any) -> None:
        if schedule.manifest.id == "bad":
            raise ZeroDivisionError
        real(schedule, *rest)

    monkeypatch.setattr(pc.local, "_look_at", look_at)
    pc.look()
    assert pc.runs == 1


def test_when_the_clock_goes_back_no_time_fires_twice(pc: Pc) -> None:
    pc.adopt(schedule_document(when=MINUTELY))
    pc.look()
    pc.minute(3)
    pc.bench.clock.learn(at(minutes=1), asked_at=180, answered_at=180)
    pc.look()
    pc.minute(2)
    assert pc.runs == 3
    pc.minute()
    assert pc.runs == 4


def test_where_the_claims_are_damaged_nothing_is_fired(tmp_path: Path) -> None:
    state.write_private(tmp_path / "claims.json", b"{")
    broken = Pc(tmp_path)
    broken.adopt(schedule_document())
    broken.look()
    assert (broken.runs, broken.local.etag) == (0, "e1")
    broken.bench.close()


def test_a_claim_that_cannot_be_stored_fires_nothing(
    pc: Pc, monkeypatch: pytest.MonkeyPatch
) -> None:
    pc.adopt(schedule_document())

    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("fleet.agent.claims.state.write_json", no_space)
        pc.look()
    assert pc.runs == 0


def test_the_last_word_is_read_back(tmp_path: Path) -> None:
    freeze = Freeze(frozen=True, reason="audit", starts_at=NOW, ends_at=at(hours=1))
    LastWordFile(tmp_path).write(freeze, NOW)
    word = LastWordFile(tmp_path).read()
    assert word is not None
    assert (word.freeze, word.server_time) == (freeze, NOW)


def test_the_last_word_is_written_when_the_freeze_changes_and_now_and_then(
    tmp_path: Path,
) -> None:
    file = LastWordFile(tmp_path)
    written = []
    for freeze, minutes in ((Freeze(), 0), (Freeze(), 59), (UNREADABLE, 59), (UNREADABLE, 119)):
        file.write(freeze, at(minutes=minutes))
        word = file.read()
        written.append(word.server_time if word else None)
    assert written == [at(), at(), at(minutes=59), at(minutes=119)]


@pytest.mark.parametrize("data", [b"", b"{}", b'{"server_time": 1}'])
def test_a_last_word_that_cannot_be_read_is_none(tmp_path: Path, data: bytes) -> None:
    state.write_private(tmp_path / "last-word.json", data)
    assert LastWordFile(tmp_path).read() is None


def test_the_servers_time_is_reckoned_by_the_pcs_clock_unless_that_was_set_back() -> None:
    word = LastWord(Freeze(), NOW, wall=NOW - timedelta(hours=3))
    assert word.server_time_at(NOW) == NOW + timedelta(hours=3)
    assert word.server_time_at(NOW - timedelta(hours=4)) is None


def test_a_reckoned_time_gives_way_to_a_heard_one(pc: Pc) -> None:
    pc.bench.clock.estimate(datetime(2040, 1, 1, tzinfo=UTC))
    assert pc.bench.clock.now() == NOW


def test_results_are_told_from_whatever_thread_they_come(pc: Pc) -> None:
    told: list[Result] = []
    pc.bench.work.tell_results_to(told.append)
    pc.bench.work.accept(make_command())
    pc.bench.result(command_id())
    assert [result.command for result in told] == [command_id()]
