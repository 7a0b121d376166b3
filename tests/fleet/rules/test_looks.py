"""Every state has a look, and no look differs by colour alone."""

from datetime import UTC, datetime, timedelta

import pytest

from fleet.rules import looks
from fleet.rules.command_states import CommandState
from fleet.rules.execution_states import ExecutionState, Progress
from fleet.rules.presence import Presence, presence
from scheduler.rules import spans
from scheduler.rules.looks import IDLE

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
STATES = [*CommandState, *ExecutionState, *Progress, *Presence]


@pytest.mark.parametrize("state", STATES)
def test_every_state_has_a_look_of_its_own_choice(state: str) -> None:
    assert looks.words_of(state) in {looks.words_of(known) for known in looks._LOOKS}


def test_good_and_bad_ends_differ_by_icon_as_well() -> None:
    assert looks.look_of("succeeded").icon != looks.look_of("failed").icon
    assert looks.look_of("failed").tone == "bad"


def test_a_word_that_nobody_described_is_neutral() -> None:
    assert looks.look_of("<b>") == IDLE


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "now"),
        (-4, "now"),
        (-59, "59 s ago"),
        (-60, "1 min ago"),
        (3600, "in 1 h"),
        (7500, "in 2 h 5 min"),
        (-90_000, "1 d 1 h ago"),
        (-864_000, "10 d ago"),
    ],
)
def test_distances_are_said_in_words(seconds: int, words: str) -> None:
    assert spans.relative(NOW + timedelta(seconds=seconds), now=NOW) == words


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (None, "\N{EN DASH}"),
        (0, "0.0 s"),
        (12_340, "12.3 s"),
        (250_000, "4 min 10 s"),
        (7_500_000, "2 h 5 min"),
    ],
)
def test_run_times_are_said_in_words(milliseconds: int | None, words: str) -> None:
    assert spans.duration_words(milliseconds) == words


@pytest.mark.parametrize(
    ("age", "word"),
    [
        (timedelta(minutes=2), Presence.ONLINE),
        (timedelta(minutes=2, seconds=1), Presence.STALE),
        (timedelta(hours=24), Presence.STALE),
        (timedelta(hours=24, seconds=1), Presence.OFFLINE),
    ],
)
def test_presence_follows_the_last_word_of_the_pc(age: timedelta, word: Presence) -> None:
    assert presence(NOW - age, now=NOW) is word


def test_a_pc_that_was_never_heard_is_offline() -> None:
    assert presence(None, now=NOW) is Presence.OFFLINE
