"""The states of a task, the moves between them, and the words for what is inside a state."""

from datetime import datetime
from enum import StrEnum


class TaskState(StrEnum):
    """What is stored. Waiting, scheduled, due and retrying are derived: see `phase_of`."""

    PENDING = "pending"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"
    QUARANTINED = "quarantined"


LIVE = frozenset({TaskState.PENDING, TaskState.RUNNING, TaskState.QUARANTINED})
TERMINAL = frozenset(TaskState) - LIVE

MOVES: dict[TaskState, frozenset[TaskState]] = {
    TaskState.PENDING: frozenset(
        {TaskState.RUNNING, TaskState.FAILED, TaskState.CANCELLED, TaskState.QUARANTINED}
    ),
    TaskState.RUNNING: frozenset(TaskState) - {TaskState.RUNNING},
    TaskState.FINISHED: frozenset({TaskState.PENDING}),
    TaskState.FAILED: frozenset({TaskState.PENDING}),
    TaskState.CANCELLED: frozenset({TaskState.PENDING}),
    TaskState.QUARANTINED: frozenset({TaskState.PENDING, TaskState.CANCELLED}),
}


def sources_of(new: TaskState) -> frozenset[TaskState]:
    """Return the states from which a task may come to `new`."""
    return frozenset(old for old, targets in MOVES.items() if new in targets)


class Reason(StrEnum):
    """Why a task ended or stands still, when the state alone does not say it."""

    NONE = ""
    PERMANENT = "permanent error"
    NO_RETRY = "failed, no retry asked for"
    EXHAUSTED = "retries used up"
    DEPENDENCY_FAILED = "a dependency did not succeed"
    CANCELLED = "cancelled"
    BAD_CRON = "unusable cron"
    CRASHED = "its process died too often"
    MISSED = "missed its time"
    CRON_ENDED = "its cron never fires again"


class Outcome(StrEnum):
    """How one run ended, as its history says it."""

    SUCCEEDED = "succeeded"
    RETRYING = "failed, tried again"
    FAILED = "failed"
    CRASHED = "lost with its runner"
    MISSED = "missed"
    NOT_RUN = "not run"


class Phase(StrEnum):
    """What a task is doing, in one word for people."""

    WAITING = "waiting"
    RETRYING = "retrying"
    SCHEDULED = "scheduled"
    DUE = "due"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"
    QUARANTINED = "quarantined"


def phase_of(
    state: TaskState, *, due_at: datetime | None, retry_count: int, now: datetime
) -> Phase:
    """Return the word for a task: the stored state, with pending told apart."""
    if state is not TaskState.PENDING:
        return Phase(state.value)
    if due_at is None:
        return Phase.WAITING
    if due_at <= now:
        return Phase.DUE
    return Phase.RETRYING if retry_count else Phase.SCHEDULED
