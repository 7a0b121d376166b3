"""How a task stands, in words: what it waits for, when it goes on, why it does not."""

from dataclasses import dataclass
from datetime import datetime

from scheduler.rules.health import LATE
from scheduler.rules.spans import relative, span_words
from scheduler.rules.states import Reason, TaskState


@dataclass(frozen=True, slots=True)
class Standing:
    """The facts about a task that its words are made of."""

    state: TaskState
    reason: str = ""
    due_at: datetime | None = None
    waits_for: int = 0
    retry_count: int = 0
    retry_times: int | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    body_started: bool = False
    suspect: bool = False
    cancelling: bool = False
    rerun: bool = False
    hook_to_run: bool = False


def words(task: Standing, *, now: datetime) -> str:
    """Return the state in words, such as `retry 2 of 5 in 3 min`."""
    match task.state:
        case TaskState.PENDING:
            return _pending(task, now)
        case TaskState.RUNNING:
            return _running(task, now)
        case TaskState.QUARANTINED:
            return f"quarantined: {task.reason or 'no reason noted'}"
        case TaskState.FINISHED | TaskState.FAILED | TaskState.CANCELLED:
            return _over(task, now)


def _pending(task: Standing, now: datetime) -> str:
    if task.waits_for or task.due_at is None:
        return f"waits for {task.waits_for} {'task' if task.waits_for == 1 else 'tasks'}"
    if task.hook_to_run:
        return "failed; its hook is called before it goes on"
    what = _retry(task)
    if task.due_at > now:
        return f"{what} {relative(task.due_at, now=now)}" if what else _in(task.due_at, now)
    late = now - task.due_at > LATE
    since = f" for {span_words(now - task.due_at)}" if late else ""
    alone = ", runs alone" if task.suspect else ""
    return f"{what or 'due'}{' is due' if what else ''}{since}{alone}"


def _in(due_at: datetime, now: datetime) -> str:
    return f"due {relative(due_at, now=now)}"


def _retry(task: Standing) -> str:
    if not task.retry_count:
        return ""
    times = f" of {task.retry_times}" if task.retry_times is not None else ""
    return f"retry {task.retry_count}{times}"


def _running(task: Standing, now: datetime) -> str:
    if not task.body_started or task.started_at is None:
        return "taken, waits for a thread"
    said = f"running for {span_words(max(now, task.started_at) - task.started_at)}"
    if task.cancelling:
        return f"{said}, cancelled when it ends"
    return f"{said}, once more after that" if task.rerun else said


def _over(task: Standing, now: datetime) -> str:
    when = f" {relative(task.ended_at, now=now)}" if task.ended_at else ""
    # What was cancelled by hand needs no reason beside it.
    why = "" if task.reason in {Reason.NONE, Reason.CANCELLED} else f": {task.reason}"
    return f"{task.state.value}{when}{why}"
