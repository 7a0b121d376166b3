"""A claim ended without its body ending: the process died, or it gave the task back."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from scheduler.rules.columns import Changes
from scheduler.rules.outcomes import closed
from scheduler.rules.states import Reason, TaskState
from scheduler.rules.timing import place


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The running task as it is when its claim ends."""

    due_at: datetime | None
    replaced: bool
    next_input: object
    rerun: bool
    rerun_not_before: datetime | None
    cancelling: bool
    waits_for: int


def put_back(row: Interrupted, *, pause: timedelta | None, now: datetime) -> Changes:
    """Return what becomes of the task: once more after `pause`, or set aside when that is None.

    A request that came meanwhile is served by the same run, with its input.
    """
    changes: Changes = {"body_started": False, "replaced": False, "next_input": None}
    changes |= {"cancelling": False, "rerun": False, "rerun_not_before": None}
    if row.cancelling:
        return changes | closed(TaskState.CANCELLED, Reason.CANCELLED, now=now)
    if row.replaced:
        changes["input"] = row.next_input
    if pause is None:
        changes |= {"state": TaskState.QUARANTINED, "reason": Reason.CRASHED}
        return changes | {"due_at": None, "not_before": None, "ready": False}
    due = now + pause if pause or row.due_at is None else row.due_at
    if row.rerun and row.rerun_not_before is not None:
        due = max(due, row.rerun_not_before)
    spot = place(due, waits_for=row.waits_for, held=False, now=now)
    changes |= {"due_at": spot.due_at, "not_before": spot.not_before, "ready": spot.ready}
    return changes | {"state": TaskState.PENDING}
