"""The server's answer, read as a whole: what matters must be right, a bad freeze is a freeze."""

import json

import pytest

from fleet.agent.answer import AnswerError, read_answer
from fleet.agent.gate import UNREADABLE, Freeze
from tests.fleet.agent.make import NOW


def told(**fields: object) -> dict[str, object]:
    return {
        "server_time": NOW.isoformat(),
        "epoch": 3,
        "wait_ticket": "t",
        "verdicts": {"a": "stored"},
        "commands": [{}],
        "kill": ["k"],
        "freeze": {"frozen": False, "reason": "", "from": None, "until": None, "unreadable": False},
        "schedules_etag": "e",
        "schedules": None,
        "next_in_s": 30,
    } | fields


def read(**fields: object) -> object:
    return read_answer(json.dumps(told(**fields)).encode())


def test_a_whole_answer_is_read() -> None:
    answer = read_answer(json.dumps(told()).encode())
    assert (answer.server_time, answer.epoch, answer.ticket) == (NOW, 3, "t")
    assert (answer.verdicts, answer.kill, answer.commands) == ({"a": "stored"}, ["k"], [{}])
    assert (answer.freeze, answer.next_in_s) == (Freeze(), 30.0)
    assert (answer.schedules_etag, answer.schedules, answer.credential) == ("e", None, None)


WRONG: list[tuple[str, object]] = [
    ("server_time", None), ("server_time", "now"), ("server_time", 7),
    ("epoch", None), ("epoch", "3"), ("epoch", -1),
    ("verdicts", None), ("verdicts", []),
    ("commands", None), ("commands", {}),
    ("kill", None), ("kill", "all"),
    ("schedules", {}), ("credential", 5), ("wait_ticket", 5),
]  # fmt: skip


@pytest.mark.parametrize(("field", "value"), WRONG)
def test_a_part_that_matters_and_is_wrong_spoils_the_answer(field: str, value: object) -> None:
    with pytest.raises(AnswerError, match=f"^{field}"):
        read(**{field: value})


@pytest.mark.parametrize("data", [b"", b"[]", b"null", b"<html>", b'{"a":1,"a":2}', b"[" * 99])
def test_what_is_no_json_object_is_no_answer(data: bytes) -> None:
    with pytest.raises(AnswerError):
        read_answer(data)


@pytest.mark.parametrize("value", [None, [], {}, {"frozen": "no"}])
def test_a_freeze_that_cannot_be_read_is_a_freeze(value: object) -> None:
    assert read_answer(json.dumps(told(freeze=value)).encode()).freeze == UNREADABLE


@pytest.mark.parametrize(
    ("value", "seconds"), [(None, 30.0), ("5", 30.0), (True, 30.0), (-1, 0.0), (9e9, 3600.0)]
)
def test_the_next_time_is_kept_within_bounds(value: object, seconds: float) -> None:
    assert read_answer(json.dumps(told(next_in_s=value)).encode()).next_in_s == seconds
