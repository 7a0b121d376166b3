"""A task's state in words."""

from dataclasses import replace
from datetime import timedelta

import pytest

from scheduler.rules.spans import span_words
from scheduler.rules.standing import Standing, words
from scheduler.rules.states import TaskState
from tests.clock import START

MINUTE = timedelta(minutes=1)
PENDING = Standing(TaskState.PENDING, due_at=START)
RUNNING = Standing(TaskState.RUNNING, started_at=START - 3 * MINUTE, body_started=True)
RETRYING = replace(PENDING, retry_count=2, retry_times=5)
ENDED = START - 2 * timedelta(hours=1)


@pytest.mark.parametrize(
    ("task", "said"),
    [
        (replace(PENDING, due_at=None, waits_for=2), "waits for 2 tasks"),
        (replace(PENDING, due_at=None, waits_for=1), "waits for 1 task"),
        (PENDING, "due"),
        (replace(PENDING, due_at=START - MINUTE), "due"),
        (replace(PENDING, due_at=START - 3 * MINUTE), "due for 3 min"),
        (replace(PENDING, suspect=True), "due, runs alone"),
        (replace(PENDING, due_at=START + 3 * MINUTE), "due in 3 min"),
        (replace(RETRYING, due_at=START + 3 * MINUTE), "retry 2 of 5 in 3 min"),
        (RETRYING, "retry 2 of 5 is due"),
        (replace(RETRYING, due_at=START - 4 * MINUTE), "retry 2 of 5 is due for 4 min"),
        (replace(RETRYING, retry_times=None), "retry 2 is due"),
        (replace(PENDING, hook_to_run=True), "failed; its hook is called before it goes on"),
        (RUNNING, "running for 3 min"),
        (replace(RUNNING, body_started=False), "taken, waits for a thread"),
        (replace(RUNNING, cancelling=True), "running for 3 min, cancelled when it ends"),
        (replace(RUNNING, rerun=True), "running for 3 min, once more after that"),
        (replace(RUNNING, started_at=START + MINUTE), "running for 0 s"),
        (Standing(TaskState.QUARANTINED, reason="unusable cron"), "quarantined: unusable cron"),
        (Standing(TaskState.QUARANTINED), "quarantined: no reason noted"),
        (Standing(TaskState.FINISHED, ended_at=ENDED), "finished 2 h ago"),
        (
            Standing(TaskState.FAILED, ended_at=ENDED, reason="retries used up"),
            "failed 2 h ago: retries used up",
        ),
        (Standing(TaskState.CANCELLED, ended_at=ENDED, reason="cancelled"), "cancelled 2 h ago"),
        (
            Standing(TaskState.CANCELLED, ended_at=ENDED, reason="missed its time"),
            "cancelled 2 h ago: missed its time",
        ),
    ],
)
def test_a_task_says_how_it_stands(task: Standing, said: str) -> None:
    assert words(task, now=START) == said


@pytest.mark.parametrize("state", TaskState)
def test_every_state_has_words(state: TaskState) -> None:
    assert words(Standing(state), now=START) != ""


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (7500, "2 h 5 min"), (86400 * 9 + 4000, "9 d")],
)
def test_a_span_has_one_or_two_units(seconds: int, said: str) -> None:
    assert span_words(timedelta(seconds=seconds)) == said
