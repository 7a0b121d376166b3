"""What a person may do to a task, and what it changes."""

from dataclasses import dataclass
from datetime import datetime

from scheduler.rules.columns import Changes
from scheduler.rules.outcomes import closed
from scheduler.rules.requests import Existing
from scheduler.rules.states import LIVE, TERMINAL, Reason, TaskState
from scheduler.rules.timing import Recurrence, place


class TaskStateError(ValueError):
    """The task is not in a state in which this can be done; the message says which it is in."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The task as it is."""

    task_id: int
    existing: Existing
    waits_for: int

    def refuse(self, act: str) -> TaskStateError:
        """Return the error for an act that this state does not allow."""
        return TaskStateError(f"task {self.task_id} is {self.existing.state}; it cannot {act}")


def plan_cancel(facts: Facts, *, now: datetime) -> Changes:
    """Never run it again; a body that runs now ends first."""
    if facts.existing.state not in LIVE:
        raise facts.refuse("be cancelled")
    if facts.existing.state is TaskState.RUNNING:
        return {"cancelling": True, "rerun": False, "rerun_not_before": None}
    return closed(TaskState.CANCELLED, Reason.CANCELLED, now=now)


def plan_run_now(facts: Facts, *, now: datetime) -> Changes:
    """Run it as soon as possible, or once more if it runs; a recurrence stays as it is."""
    existing = facts.existing
    if existing.state is TaskState.RUNNING:
        return {"rerun": True, "rerun_not_before": None, "cancelling": False}
    if existing.state is not TaskState.PENDING:
        raise facts.refuse("run now")
    if facts.waits_for:
        raise TaskStateError(
            f"task {facts.task_id} waits for {facts.waits_for} others; it cannot run before them"
        )
    recurs, in_backoff = existing.recurrence is not None, existing.retry_count > 0
    return {
        **_placed(now, existing, now=now),
        "extra": existing.extra or (recurs and not in_backoff),
        "retry_count": 0,
        "attempt": 0,
    }


def plan_retry(facts: Facts, *, now: datetime) -> Changes:
    """Start a task that is over once more, with a whole budget."""
    if facts.existing.state not in TERMINAL:
        raise facts.refuse("be tried again; only what is over can")
    return _fresh(facts.existing, now=now)


def plan_release(facts: Facts, *, now: datetime) -> Changes:
    """Let a quarantined task run again; it is no suspect any more."""
    existing = facts.existing
    if existing.state is not TaskState.QUARANTINED:
        raise facts.refuse("be released; only what is quarantined can")
    if existing.recurrence is not None:
        existing.recurrence.require_usable()
    changes = _fresh(existing, now=now)
    if facts.waits_for:
        changes |= {"due_at": None, "ready": False}
    return changes | {"waits_for": facts.waits_for}


def plan_cron(
    facts: Facts, recurrence: Recurrence, override: str | None, *, now: datetime
) -> Changes:
    """Put `recurrence` into force; `override` is what staff typed, None for code's own cron."""
    existing = facts.existing
    if existing.recurrence is None:
        raise TaskStateError(f"task {facts.task_id} does not recur; request it with a cron")
    changes: Changes = {"cron_override": override}
    if existing.state is TaskState.QUARANTINED and existing.reason is Reason.BAD_CRON:
        changes |= {"state": TaskState.PENDING, "reason": Reason.NONE, "last_error": ""}
    elif existing.state is not TaskState.PENDING or existing.recurrence == recurrence:
        return _forget_old_occurrence(changes, existing, recurrence)
    occurrence = recurrence.next_after(now)
    changes |= {"occurrence_at": occurrence}
    if existing.extra and existing.due_at is not None:
        return changes  # the run in between comes first, as planned
    spot = place(occurrence, waits_for=facts.waits_for, held=existing.held, now=now)
    return {
        **changes,
        "due_at": spot.due_at,
        "not_before": spot.not_before,
        "ready": spot.ready,
        "retry_count": 0,
        "attempt": 0,
    }


def _forget_old_occurrence(changes: Changes, existing: Existing, recurrence: Recurrence) -> Changes:
    changed = existing.recurrence != recurrence
    if changed and existing.extra and existing.state is TaskState.RUNNING:
        return changes | {"occurrence_at": None}
    return changes


def plan_due(facts: Facts, at: datetime, *, now: datetime) -> Changes:
    """Move the next run to `at`."""
    existing = facts.existing
    if existing.state is not TaskState.PENDING:
        raise facts.refuse("be given another time")
    if facts.waits_for:
        return {"not_before": at}
    return _placed(at, existing, now=now)


def _fresh(existing: Existing, *, now: datetime) -> Changes:
    wanted, occurrence = now, existing.occurrence_at
    if existing.recurrence is not None:
        occurrence = existing.recurrence.next_after(now)
        wanted = occurrence or now
    return {
        **_placed(wanted, existing, now=now),
        "state": TaskState.PENDING,
        "reason": Reason.NONE,
        "occurrence_at": occurrence,
        "extra": False,
        "retry_count": 0,
        "attempt": 0,
        "suspect": False,
        "crash_count": 0,
        "waits_for": 0,
        "ended_at": None,
    }


def _placed(at: datetime, existing: Existing, *, now: datetime) -> Changes:
    spot = place(at, waits_for=0, held=existing.held, now=now)
    return {"due_at": spot.due_at, "not_before": spot.not_before, "ready": spot.ready}
