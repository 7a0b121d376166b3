"""The outbox: kept until answered for, oldest first, and no file holds up the others."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from fleet.agent import state
from fleet.agent.commands import Outcome
from fleet.agent.outbox import Outbox
from fleet.agent.output import Output, Stream
from fleet.agent.results import Result, to_document
from tests.fleet.agent.make import NOW, command_id

PLENTY = 4 * 1024 * 1024


class Steady:
    """A clock that moves when told."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def document(number: int = 1) -> dict[str, object]:
    return to_document(Result(command_id(number), Outcome.SUCCEEDED, NOW, exit_code=0))


def filled(folder: Path, *numbers: int, steady: Steady | None = None) -> Outbox:
    outbox = Outbox(folder / "outbox", steady=steady or Steady())
    for number in numbers:
        outbox.put(document(number))
    return outbox


def due(outbox: Outbox, most_bytes: int = PLENTY) -> list[object]:
    return [result["command"] for result in outbox.due(most_bytes=most_bytes)]


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "outbox").glob("*.json"))


def test_a_result_is_read_back_unchanged_after_a_restart(tmp_path: Path) -> None:
    filled(tmp_path, 1)
    assert Outbox(tmp_path / "outbox").due(most_bytes=PLENTY) == [document(1)]


def test_results_come_in_the_order_in_which_they_were_put(tmp_path: Path) -> None:
    filled(tmp_path, 3, 1)
    outbox = filled(tmp_path, 2)
    assert due(outbox) == [command_id(3), command_id(1), command_id(2)]


@pytest.mark.parametrize("verdict", ["stored", "duplicate", "unknown"])
def test_a_settled_result_is_gone_for_good(tmp_path: Path, verdict: str) -> None:
    outbox = filled(tmp_path, 1, 2)
    assert outbox.settle(command_id(1), verdict) is True
    assert due(outbox) == [command_id(2)]
    assert due(Outbox(tmp_path / "outbox")) == [command_id(2)]


def test_a_conflict_is_put_aside_and_not_sent_again(tmp_path: Path) -> None:
    outbox = filled(tmp_path, 1)
    assert outbox.settle(command_id(1), "conflict") is True
    assert (due(outbox), files(tmp_path)) == ([], [])
    assert [path.name[13:49] for path in (tmp_path / "outbox" / "aside").iterdir()] == [
        command_id(1)
    ]


def test_a_word_that_is_not_known_keeps_the_result(tmp_path: Path) -> None:
    outbox = filled(tmp_path, 1)
    assert outbox.settle(command_id(1), "perhaps") is False
    assert len(files(tmp_path)) == 1


def test_a_verdict_for_nothing_changes_nothing(tmp_path: Path) -> None:
    outbox = filled(tmp_path, 1)
    assert outbox.settle(command_id(9), "stored") is True
    assert len(files(tmp_path)) == 1


def test_what_is_not_answered_for_waits_longer_each_time_and_alone(tmp_path: Path) -> None:
    steady = Steady()
    outbox = filled(tmp_path, 1, 2, steady=steady)
    delays = []
    for _ in range(10):
        outbox.postpone(command_id(1))
        assert due(outbox) == [command_id(2)]
        left = 0.0
        while command_id(1) not in due(outbox):
            left += 1
            steady.at += 1
        delays.append(left)
    assert delays == [1, 2, 4, 8, 16, 32, 64, 128, 256, 256]


def test_the_next_result_is_due_when_its_delay_ends(tmp_path: Path) -> None:
    outbox = filled(tmp_path)
    assert outbox.next_due_in() is None
    outbox.put(document(1))
    assert outbox.next_due_in() == 0.0
    outbox.postpone(command_id(1))
    assert outbox.next_due_in() == 1.0


def test_what_does_not_fit_waits_for_the_next_exchange(tmp_path: Path) -> None:
    outbox = filled(tmp_path, 1, 2, 3)
    size = len((tmp_path / "outbox" / files(tmp_path)[0]).read_bytes())
    assert due(outbox, most_bytes=2 * size) == [command_id(1), command_id(2)]
    assert due(outbox, most_bytes=2 * size - 1) == [command_id(1)]


def test_one_result_is_sent_whatever_the_room(tmp_path: Path) -> None:
    assert due(filled(tmp_path, 1, 2), most_bytes=0) == [command_id(1)]


@pytest.mark.parametrize("data", [b"", b"{", b"\x00\xff", b"[]", b'{"command": 7}', b"{}"])
def test_a_corrupt_file_is_put_aside_and_the_others_go_on(tmp_path: Path, data: bytes) -> None:
    filled(tmp_path, 1, 2)
    state.write_private(tmp_path / "outbox" / files(tmp_path)[0], data)
    outbox = Outbox(tmp_path / "outbox")
    assert due(outbox) == [command_id(2)]
    assert outbox.lost == [command_id(1)]
    assert len(list((tmp_path / "outbox" / "aside").iterdir())) == 1


def test_a_file_that_is_damaged_while_the_agent_runs_is_put_aside(tmp_path: Path) -> None:
    outbox = filled(tmp_path, 1, 2)
    state.write_private(tmp_path / "outbox" / files(tmp_path)[0], b"junk")
    assert due(outbox) == [command_id(2)]
    assert outbox.lost == [command_id(1)]


def test_a_file_under_another_commands_name_is_put_aside(tmp_path: Path) -> None:
    filled(tmp_path, 1)
    path = tmp_path / "outbox" / files(tmp_path)[0]
    path.replace(path.with_name(f"000000000009-{command_id(2)}.json"))
    outbox = Outbox(tmp_path / "outbox")
    assert (due(outbox), outbox.lost) == ([], [command_id(2)])


def test_half_a_file_of_a_crash_is_never_seen(tmp_path: Path) -> None:
    filled(tmp_path, 1)
    state.write_private(tmp_path / "outbox" / ".000000000002-x.json.tmp", b"{")
    outbox = Outbox(tmp_path / "outbox")
    assert (due(outbox), outbox.lost) == ([command_id(1)], [])


def test_on_a_full_disk_a_result_is_sent_from_memory_and_saved_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox = filled(tmp_path)

    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(state, "write_private", no_space)
        outbox.put(document(1))
        assert due(outbox) == [command_id(1)]
        assert files(tmp_path) == []
    assert due(outbox) == [command_id(1)]
    assert len(files(tmp_path)) == 1


def test_the_largest_result_fits() -> None:
    output = Output(1024 * 1024)
    output.feed(Stream.STDOUT, b"\xff" * 2_000_000)
    output.feed(Stream.STDERR, b"\x00" * 2_000_000)
    result = Result(
        command_id(), Outcome.FAILED, NOW, reason="\x1b" * 5000, output=output.captured()
    )
    assert len(json.dumps(to_document(result))) < 1_500_000


def test_a_negative_duration_is_never_reported() -> None:
    result = Result(command_id(), Outcome.SUCCEEDED, NOW, duration=timedelta(seconds=-3))
    assert to_document(result)["duration_ms"] == 0
