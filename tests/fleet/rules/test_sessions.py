"""Machines, starts and messages told apart."""

from dataclasses import replace

import pytest

from fleet.rules.sessions import (
    REFUSED,
    Greeting,
    Session,
    Standing,
    judge,
    next_epoch,
    same_machine,
)

KNOWN = Session(fingerprint="a" * 64, epoch=5, boot_id="boot-1", seq=40)
SAME = Greeting(fingerprint="a" * 64, epoch=5, boot_id="boot-1", seq=41)
S = Standing


@pytest.mark.parametrize(
    ("changes", "standing"),
    [
        pytest.param({}, S.GOES_ON, id="the next exchange"),
        pytest.param({"seq": 100}, S.GOES_ON, id="a later one, some got lost"),
        pytest.param({"seq": 40}, S.REPEATED, id="the last one again"),
        pytest.param({"seq": 39}, S.BELATED, id="one from before the last"),
        pytest.param({"epoch": 4}, S.OUTDATED, id="an older start"),
        pytest.param({"epoch": 4, "seq": 1000}, S.OUTDATED, id="an older start that counts on"),
        pytest.param({"epoch": 6}, S.STARTS, id="a start that the server has forgotten"),
        pytest.param({"epoch": None}, S.STARTS, id="a new start"),
        pytest.param({"epoch": None, "seq": 40}, S.REPEATED, id="the last start again"),
        pytest.param({"epoch": None, "seq": 39}, S.BELATED, id="a replayed start"),
        pytest.param(
            {"epoch": None, "seq": 3, "boot_id": "boot-2"}, S.STARTS, id="a machine set back"
        ),
        pytest.param({"fingerprint": "b" * 64}, S.STRANGER, id="another machine"),
        pytest.param(
            {"fingerprint": "b" * 64, "epoch": None}, S.STRANGER, id="another machine that starts"
        ),
        pytest.param({"fingerprint": ""}, S.STRANGER, id="a machine that does not say"),
        pytest.param({"boot_id": "boot-2"}, S.GOES_ON, id="the clock's guess of the boot moved"),
    ],
)
def test_an_exchange_is_what_its_greeting_says(
    changes: dict[str, object], standing: Standing
) -> None:
    assert judge(KNOWN, replace(SAME, **changes)) is standing  # type: ignore[arg-type]  # a table


def test_the_first_exchange_of_an_agent_is_a_start_whatever_its_number() -> None:
    fresh = replace(KNOWN, epoch=0, boot_id="", seq=0)

    assert judge(fresh, Greeting("a" * 64, None, "", 0)) is S.STARTS


def test_an_agent_without_a_known_machine_lets_nobody_in() -> None:
    assert judge(replace(KNOWN, fingerprint=""), replace(SAME, fingerprint="")) is S.STRANGER
    assert same_machine("", "") is False


def test_only_those_who_are_not_this_agent_are_refused() -> None:
    assert {S.OUTDATED, S.STRANGER} == REFUSED


@pytest.mark.parametrize(("presented", "given"), [(None, 6), (5, 6), (9, 10)])
def test_a_new_epoch_is_later_than_any_that_is_remembered(
    presented: int | None, given: int
) -> None:
    assert next_epoch(KNOWN, replace(SAME, epoch=presented)) == given
