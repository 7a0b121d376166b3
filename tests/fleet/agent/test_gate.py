"""What forbids a start: the freeze as last told, the stop, the server's trust, latched kills."""

from datetime import timedelta

import pytest

from fleet.agent.gate import UNREADABLE, Freeze, Gate, read_freeze
from tests.fleet.agent.make import NOW, command_id

HOUR = timedelta(hours=1)


def told(**fields: object) -> dict[str, object]:
    freeze: dict[str, object] = {
        "frozen": False,
        "reason": "",
        "from": None,
        "until": None,
        "unreadable": False,
    }
    return {"freeze": freeze | fields}


def thawed() -> Gate:
    gate = Gate()
    gate.set_freeze(Freeze())
    return gate


FREEZES = [
    (Freeze(), False),
    (Freeze(frozen=True), True),
    (Freeze(frozen=True, ends_at=NOW + HOUR), True),
    (Freeze(frozen=True, ends_at=NOW), False),
    (Freeze(frozen=True, ends_at=NOW - HOUR), False),
    (Freeze(starts_at=NOW + HOUR), False),
    (Freeze(starts_at=NOW), True),
    (Freeze(starts_at=NOW - HOUR, ends_at=NOW + HOUR), True),
    (Freeze(starts_at=NOW - HOUR, ends_at=NOW), False),
    (Freeze(unreadable=True), True),
    (Freeze(unreadable=True, ends_at=NOW - HOUR), True),
]


@pytest.mark.parametrize(("freeze", "frozen"), FREEZES)
def test_a_freeze_holds_by_its_bounds_also_offline(freeze: Freeze, frozen: bool) -> None:
    assert freeze.covers(NOW) is frozen


def test_the_servers_word_is_taken_as_told() -> None:
    value = told(frozen=True, reason="audit", until=(NOW + HOUR).isoformat())
    assert read_freeze(value) == Freeze(frozen=True, reason="audit", ends_at=NOW + HOUR)


BROKEN: list[dict[str, object]] = [
    {},
    {"freeze": None},
    {"freeze": []},
    told(frozen="no"),
    told(frozen=None),
    told(until="soon"),
    told(**{"from": 7}),
    told(reason=5),
    told(unreadable=None),
]


@pytest.mark.parametrize("value", BROKEN)
def test_a_word_that_cannot_be_read_is_a_freeze(value: dict[str, object]) -> None:
    assert read_freeze(value) == UNREADABLE
    assert UNREADABLE.covers(NOW)


def test_before_the_server_has_spoken_nothing_may_start() -> None:
    assert Gate().forbids(NOW, override_freeze=False) is not None


def test_an_open_gate_forbids_nothing() -> None:
    assert thawed().forbids(NOW, override_freeze=False) is None


def test_a_freeze_names_its_reason_and_an_override_passes_it() -> None:
    gate = thawed()
    gate.set_freeze(Freeze(frozen=True, reason="year end"))
    assert gate.forbids(NOW, override_freeze=False) == "frozen: year end"
    assert gate.forbids(NOW, override_freeze=True) is None


def test_an_unknown_time_forbids_a_start_whoever_asks() -> None:
    assert thawed().forbids(None, override_freeze=True) == "the server's time is not known"


def test_a_hold_is_lifted_by_an_empty_one() -> None:
    gate = thawed()
    gate.hold("revoked")
    assert gate.forbids(NOW, override_freeze=True) == "revoked"
    gate.hold("")
    assert gate.forbids(NOW, override_freeze=True) is None


def test_a_stopping_agent_starts_nothing() -> None:
    gate = thawed()
    gate.stop()
    assert gate.forbids(NOW, override_freeze=True) == "the agent is stopping"
    assert not gate.is_aborting


def test_a_kill_is_latched_for_a_command_that_has_not_come() -> None:
    gate = thawed()
    gate.kill([command_id(1)])
    assert gate.is_killed(command_id(1))
    assert not gate.is_killed(command_id(2))


def test_the_latched_kills_are_bounded_and_the_newest_stay() -> None:
    gate = thawed()
    gate.kill(command_id(number) for number in range(5000))
    assert not gate.is_killed(command_id(0))
    assert gate.is_killed(command_id(4999))


def test_whoever_waits_is_woken_by_the_bell() -> None:
    gate = thawed()
    assert gate.wait_for(lambda: True, 60) is True
    assert gate.wait_for(lambda: False, 0) is False
