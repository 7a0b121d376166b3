"""A body ended: what becomes of its task, decided from the row as it is now.

The retry is decided by the policy that the claim saw; whether the task recurs, runs again or ends
is decided by the row, for requests may have changed it meanwhile.
"""

from dataclasses import dataclass
from datetime import datetime

from scheduler.rules.backoff import backoff, may_retry
from scheduler.rules.columns import Changes
from scheduler.rules.fire import Retry
from scheduler.rules.misfire import Misfire
from scheduler.rules.states import Outcome, Reason, TaskState
from scheduler.rules.timing import Recurrence, UnusableCronError, place


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The body returned. `silent` runs leave no row in the history."""

    result: object = None
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    """The body raised. `error` is one line, `trace` the traceback."""

    error: str
    trace: str = ""
    permanent: bool = False


Ended = Succeeded | Failed


@dataclass(frozen=True, slots=True)
class Row:
    """The running task as it is in the database at its end."""

    recurrence: Recurrence | None
    misfire: Misfire
    occurrence_at: datetime | None
    extra: bool
    retry_count: int
    replaced: bool
    next_input: object
    rerun: bool
    rerun_not_before: datetime | None
    dropped: int
    cancelling: bool
    waits_for: int


@dataclass(frozen=True, slots=True)
class Transition:
    """What the end of a run does: new columns, its word in the history, and who is told.

    `settles` frees the tasks that wait for this one; `succeeded` tells those that require it.
    `hook_count` is the number for the kind's hook: retries made before, None for no hook.
    """

    changes: Changes
    outcome: Outcome
    settles: bool
    succeeded: bool
    dropped_request: bool = False
    hook_count: int | None = None


# What a run leaves behind it, whatever comes next.
_AFTER: Changes = {
    "replaced": False,
    "next_input": None,
    "cancelling": False,
    "body_started": False,
    "suspect": False,
    "crash_count": 0,
}


def conclude(ended: Ended, row: Row, policy: Retry | None, *, now: datetime) -> Transition:
    """Decide what becomes of a task whose body ended at `now`."""
    if isinstance(ended, Succeeded):
        return _succeeded(ended, row, now=now)
    return _failed(ended, row, policy, now=now)


def _succeeded(ended: Succeeded, row: Row, *, now: datetime) -> Transition:
    changes = _AFTER | {"result": ended.result, "last_error": "", "reason": Reason.NONE}
    if row.cancelling:
        changes |= closed(TaskState.CANCELLED, Reason.CANCELLED, now=now)
    elif row.rerun or row.recurrence is not None:
        changes |= _replacement(row) | goes_on(row, now=now)
    else:
        changes |= closed(TaskState.FINISHED, Reason.NONE, now=now)
    # One more run was asked for: whoever waits for this task waits for that one.
    return Transition(
        changes, Outcome.SUCCEEDED, settles=not row.rerun or row.cancelling, succeeded=True
    )


def _failed(ended: Failed, row: Row, policy: Retry | None, *, now: datetime) -> Transition:
    changes = _AFTER | {"last_error": ended.error}
    if row.cancelling:
        changes |= closed(TaskState.CANCELLED, Reason.CANCELLED, now=now)
        return Transition(
            changes,
            Outcome.FAILED,
            settles=True,
            succeeded=False,
            dropped_request=row.rerun,
            hook_count=row.retry_count,
        )
    if policy is not None and not ended.permanent and may_retry(policy, row.retry_count):
        return _retried(changes, row, policy, now=now)
    return _given_up(changes, ended, row, policy, now=now)


def _retried(changes: Changes, row: Row, policy: Retry, *, now: datetime) -> Transition:
    """Try again later, with the newest input; a request that came meanwhile is thereby served."""
    due = now + backoff(policy, row.retry_count)
    if row.rerun and row.rerun_not_before is not None:
        due = max(due, row.rerun_not_before)
    spot = place(due, waits_for=row.waits_for, held=False, now=now)
    changes = changes | _replacement(row)
    changes |= {"state": TaskState.PENDING, "retry_count": row.retry_count + 1}
    changes |= {"due_at": spot.due_at, "not_before": spot.not_before, "ready": spot.ready}
    changes |= {"rerun": False, "rerun_not_before": None}
    return Transition(
        changes, Outcome.RETRYING, settles=False, succeeded=False, hook_count=row.retry_count
    )


def _given_up(
    changes: Changes, ended: Failed, row: Row, policy: Retry | None, *, now: datetime
) -> Transition:
    """Fail for good, or this occurrence alone if the task recurs; drop a pending request."""
    reason = Reason.PERMANENT
    if not ended.permanent:
        reason = Reason.NO_RETRY if policy is None else Reason.EXHAUSTED
    changes = changes | {"reason": reason, "dropped": row.dropped + int(row.rerun)}
    if row.recurrence is None:
        changes |= closed(TaskState.FAILED, reason, now=now)
    else:
        # The row goes on, so the newest input stays with it; only the extra run is dropped.
        changes |= _replacement(row) | _recurs(row, row.recurrence, now=now)
        changes |= {"rerun": False, "rerun_not_before": None}
    return Transition(
        changes,
        Outcome.FAILED,
        settles=True,
        succeeded=False,
        dropped_request=row.rerun,
        hook_count=row.retry_count,
    )


def _replacement(row: Row) -> Changes:
    """Return the input of a request that came while the body ran."""
    return {"input": row.next_input} if row.replaced else {}


def closed(state: TaskState, reason: Reason, *, now: datetime) -> Changes:
    """Return the columns of a task that is over."""
    return {
        "state": state,
        "reason": reason,
        "due_at": None,
        "not_before": None,
        "ready": False,
        "rerun": False,
        "rerun_not_before": None,
        "waits_for": 0,
        "ended_at": now,
    }


def goes_on(row: Row, *, now: datetime) -> Changes:
    """Return what comes after a success: the asked run or the next occurrence, as is first."""
    if row.recurrence is None:
        return _again(row, row.occurrence_at, now=now) | {"extra": False}
    changes = _recurs(row, row.recurrence, now=now)
    occurrence = changes.get("occurrence_at")
    if not row.rerun or changes.get("state") is not TaskState.PENDING:
        return changes
    asked = row.rerun_not_before or now
    if occurrence is not None and occurrence < asked:
        return changes  # the asked run keeps for after it
    return changes | _again(row, occurrence, now=now) | {"extra": True}


def _again(row: Row, occurrence: datetime | None, *, now: datetime) -> Changes:
    spot = place(row.rerun_not_before, waits_for=row.waits_for, held=False, now=now)
    return {
        "state": TaskState.PENDING,
        "due_at": spot.due_at,
        "not_before": spot.not_before,
        "ready": spot.ready,
        "occurrence_at": occurrence,
        "retry_count": 0,
        "attempt": 0,
        "rerun": False,
        "rerun_not_before": None,
    }


def _recurs(row: Row, recurrence: Recurrence, *, now: datetime) -> Changes:
    """Wait for the next occurrence with a whole budget; an unusable cron is set aside."""
    try:
        occurrence = _next_occurrence(row, recurrence, now=now)
    except UnusableCronError as error:
        return quarantined_for_cron(error)
    if occurrence is None:
        return closed(TaskState.FINISHED, Reason.CRON_ENDED, now=now)
    spot = place(occurrence, waits_for=row.waits_for, held=False, now=now)
    return {
        "state": TaskState.PENDING,
        "due_at": spot.due_at,
        "not_before": spot.not_before,
        "ready": spot.ready,
        "occurrence_at": occurrence,
        "extra": False,
        "retry_count": 0,
        "attempt": 0,
    }


def _next_occurrence(row: Row, recurrence: Recurrence, *, now: datetime) -> datetime | None:
    if row.extra and row.occurrence_at is not None:
        return row.occurrence_at  # a run in between uses none up
    if row.misfire is Misfire.ALL and row.occurrence_at is not None:
        return recurrence.next_after(row.occurrence_at)
    # A clock that was set back must not bring the same occurrence again.
    return recurrence.next_after(max(now, row.occurrence_at or now))


def quarantined_for_cron(error: UnusableCronError) -> Changes:
    """Return the columns of a task that is never run and never retired until it is corrected."""
    return {
        "state": TaskState.QUARANTINED,
        "reason": Reason.BAD_CRON,
        "last_error": str(error),
        "due_at": None,
        "not_before": None,
        "ready": False,
        "rerun": False,
        "rerun_not_before": None,
    }
