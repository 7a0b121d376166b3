"""Starts, and output while a script runs."""

import logging
from datetime import timedelta
from typing import Any

import pytest

from fleet.flow import progress as module
from fleet.flow.progress import note_progress
from fleet.models import Command, OutputChunk, new_id
from fleet.rules.command_states import CommandState
from fleet.rules.report_items import Chunk, Start, read_chunk
from tests.fleet.flow.reporting import chunk, start
from tests.fleet.make import NOW, make_agent, make_command

pytestmark = pytest.mark.django_db
S = CommandState
LATER = NOW + timedelta(minutes=1)


def handed_out(**fields: Any) -> Command:
    values: dict[str, Any] = {
        "state": S.HANDED_OUT,
        "handed_out_at": NOW,
        "deadline_at": NOW + timedelta(hours=1),
        "reap_at": NOW + timedelta(hours=1, seconds=150),
    }
    return make_command(**(values | fields))


def note(command: Command, *starts: Start) -> Command:
    note_progress(command.agent_id, starts, [], now=LATER)
    command.refresh_from_db()
    return command


def kept() -> list[tuple[str, int, bytes]]:
    rows = OutputChunk.objects.order_by("stream", "offset")
    return [(row.stream, row.offset, bytes(row.data)) for row in rows]


def append(command: Command, *chunks: Chunk) -> None:
    note_progress(command.agent_id, [], chunks, now=LATER)


def test_a_start_is_noted_with_its_time_and_when_to_give_up() -> None:
    command = handed_out()
    report = start(command, started_at="2026-12-01T12:00:30+00:00")

    note(command, report)

    began = NOW + timedelta(seconds=30)
    assert (command.state, command.attempt, command.started_at) == ("started", 1, began)
    assert command.reap_at == began + timedelta(seconds=150)


def test_a_further_attempt_keeps_the_first_start() -> None:
    command = handed_out()
    note(command, start(command))
    first = (command.started_at, command.reap_at)

    note(command, start(command, 2, started_at="2026-12-01T12:00:59+00:00"))

    assert command.attempt == 2
    assert (command.started_at, command.reap_at) == first


def test_a_start_that_comes_twice_or_late_changes_nothing() -> None:
    command = handed_out()
    note(command, start(command, 2))
    before = Command.objects.values().get(pk=command.pk)

    note(command, start(command, 2), start(command, 1))

    assert Command.objects.values().get(pk=command.pk) == before


@pytest.mark.parametrize("state", [S.SUCCEEDED, S.FAILED, S.OUTCOME_UNKNOWN, S.CANCELLED])
def test_a_late_start_does_not_reopen_what_has_ended(state: CommandState) -> None:
    command = handed_out(state=state, ended_at=NOW)

    note(command, start(command))

    assert (command.state, command.attempt) == (state.value, 0)


def test_a_start_that_the_server_forgot_handing_out_is_noted() -> None:
    command = make_command(state=S.QUEUED)

    note(command, start(command))

    assert command.state == "started"
    assert command.reap_at == NOW + timedelta(hours=24)


@pytest.mark.parametrize(
    ("told", "noted"),
    [
        ("2020-01-01T00:00:00+00:00", NOW),
        ("2030-01-01T00:00:00+00:00", LATER),
        ("not a time", LATER),
        (None, LATER),
    ],
)
def test_a_wrong_clock_starts_between_the_hand_out_and_now(told: Any, noted: Any) -> None:
    command = handed_out()

    note(command, start(command, started_at=told))

    assert command.started_at == noted


def test_output_is_kept_in_its_place_once() -> None:
    command = handed_out(state=S.STARTED)

    append(command, chunk(command, 0, b"one "), chunk(command, 4, b"two"))
    append(command, chunk(command, 4, b"TWO"), chunk(command, 0, b"oops", "stderr"))

    assert kept() == [("stderr", 0, b"oops"), ("stdout", 0, b"one "), ("stdout", 4, b"two")]


def test_output_of_a_command_that_has_ended_is_left_out() -> None:
    command = handed_out(state=S.SUCCEEDED)

    append(command, chunk(command, 0, b"late"))

    assert kept() == []


def test_output_while_it_runs_is_bounded() -> None:
    command = handed_out(state=S.STARTED)
    piece = b"x" * 300_000

    for number in range(5):
        append(command, chunk(command, number, piece), chunk(command, 10 + number, piece))

    assert sum(len(data) for _, _, data in kept()) == 900_000


@pytest.mark.parametrize(
    "item",
    [
        {"stream": "stdin", "offset": 0, "bytes": "aGk="},
        {"stream": "stdout", "offset": -1, "bytes": "aGk="},
        {"stream": "stdout", "offset": 0, "bytes": "%%"},
        {"stream": ["stdout"], "offset": 0, "bytes": "aGk="},
        {},
    ],
)
def test_a_spoilt_piece_is_left_out(item: dict[str, Any]) -> None:
    command = handed_out(state=S.STARTED)

    append(command, read_chunk(command.pk, item))

    assert kept() == []


def test_unknown_and_foreign_commands_are_named_alike_and_untouched() -> None:
    mine, foreign = make_agent(), handed_out()
    stranger = new_id()

    unknown = note_progress(
        mine.pk,
        [start(foreign)],
        [chunk(foreign, 0, b"hi"), Chunk(stranger, "stdout", 0, b"hi")],
        now=LATER,
    )

    foreign.refresh_from_db()
    assert unknown == {foreign.pk, stranger}
    assert foreign.state == "handed_out"
    assert kept() == []


def test_progress_that_cannot_be_stored_stops_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    command = handed_out()

    def fails(*_: Any) -> None:
        raise ValueError("poison")

    monkeypatch.setattr(module, "_start", fails)
    with caplog.at_level(logging.ERROR):
        note(command, start(command))

    assert command.state == "handed_out"
    assert "progress could not be stored" in caplog.text
