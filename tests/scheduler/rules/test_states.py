"""The table of states is closed and says what the docs say."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from scheduler.rules.states import LIVE, MOVES, TERMINAL, Phase, TaskState, phase_of, sources_of

NOW = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
LATER = NOW + timedelta(seconds=1)


def test_every_state_has_its_moves() -> None:
    assert set(MOVES) == set(TaskState)
    assert set(TaskState) == LIVE | TERMINAL
    assert not LIVE & TERMINAL


def test_what_is_over_only_ever_starts_again() -> None:
    assert {MOVES[state] for state in TERMINAL} == {frozenset({TaskState.PENDING})}


def test_only_a_pending_task_begins_to_run() -> None:
    assert sources_of(TaskState.RUNNING) == {TaskState.PENDING}


@pytest.mark.parametrize(
    ("due_at", "count", "phase"),
    [
        (None, 0, Phase.WAITING),
        (NOW, 0, Phase.DUE),
        (NOW, 3, Phase.DUE),
        (LATER, 0, Phase.SCHEDULED),
        (LATER, 1, Phase.RETRYING),
    ],
)
def test_pending_is_told_apart_for_people(
    due_at: datetime | None, count: int, phase: Phase
) -> None:
    found = phase_of(TaskState.PENDING, due_at=due_at, retry_count=count, now=NOW)

    assert found is phase


@pytest.mark.parametrize("state", sorted(set(TaskState) - {TaskState.PENDING}))
def test_the_other_states_speak_for_themselves(state: TaskState) -> None:
    assert phase_of(state, due_at=None, retry_count=0, now=NOW).value == state.value


def test_the_page_of_states_names_every_state_and_move() -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "states.md"
    text = page.read_text(encoding="utf-8")

    for old, targets in MOVES.items():
        for new in targets:
            assert f"{old.value} --> {new.value}" in text
