"""What a request for a key means, given the row that is there: the latest request wins.

Nothing queues up behind a key. A pending row is overwritten; a running one is left alone and runs
once more when it ends.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from scheduler.rules.columns import Changes
from scheduler.rules.fire import Retry
from scheduler.rules.misfire import Misfire
from scheduler.rules.states import Reason, TaskState
from scheduler.rules.timing import Place, Recurrence, place


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request, checked. `at` None means now, or the next occurrence of a recurrence."""

    input: object
    queue: str
    priority: int
    retry: Retry | None = None
    recurrence: Recurrence | None = None
    misfire: Misfire = Misfire.ONCE
    at: datetime | None = None
    run_on_startup: bool = False
    coalesce: bool = False
    waits_for: int = 0

    def waiting_for(self, count: int) -> "Wanted":
        """Return the same request with the number of tasks it still has to wait for."""
        return self if count == self.waits_for else replace(self, waits_for=count)


@dataclass(frozen=True, slots=True)
class Existing:
    """The live row of a key. `recurrence` is the effective one: staff's cron before code's."""

    state: TaskState
    reason: Reason
    recurrence: Recurrence | None
    cron_override: str | None
    due_at: datetime | None
    not_before: datetime | None
    occurrence_at: datetime | None
    extra: bool
    retry_count: int
    rerun: bool
    rerun_not_before: datetime | None
    # Its hook has not run yet: requests are absorbed until then.
    held: bool


def plan_insert(wanted: Wanted, *, now: datetime) -> Changes:
    """Return the columns of a new row."""
    changes = _overwritten(wanted) | {"state": TaskState.PENDING}
    if wanted.recurrence is None:
        return changes | {"misfire": wanted.misfire} | _placed(wanted.at, wanted, now=now)
    changes |= _recurrence(wanted.recurrence, wanted.misfire)
    return changes | _first_fire(wanted, wanted.recurrence, now=now)


def plan_update(existing: Existing, wanted: Wanted, *, now: datetime) -> Changes | None:
    """Return what the request changes in the live row, or None for nothing."""
    if existing.state is TaskState.RUNNING:
        return None if wanted.coalesce else _in_flight(existing, wanted)
    changes = _overwritten(wanted)
    if wanted.recurrence is not None:
        changes |= _recurrence(wanted.recurrence, wanted.misfire)
    elif existing.recurrence is None:
        changes["misfire"] = wanted.misfire
    if existing.state is TaskState.QUARANTINED:
        return changes | _in_quarantine(existing, wanted, now=now)
    return changes | _pending(existing, wanted, now=now)


def effective(existing: Existing, wanted: Recurrence) -> Recurrence:
    """Return the recurrence after the request: a cron that staff typed stays in force."""
    if existing.cron_override is None:
        return wanted
    return replace(wanted, cron=existing.cron_override)


def _overwritten(wanted: Wanted) -> Changes:
    """Return what every request replaces, whatever the row does now."""
    return {"input": wanted.input, **_policy(wanted)}


def _policy(wanted: Wanted) -> Changes:
    retry = wanted.retry
    return {
        "queue": wanted.queue,
        "priority": wanted.priority,
        "retry_times": retry.times if retry else None,
        "retry_min": retry.min if retry else None,
        "retry_max": retry.max if retry else None,
        "waits_for": wanted.waits_for,
    }


def _recurrence(recurrence: Recurrence, misfire: Misfire) -> Changes:
    return {
        "cron": recurrence.cron,
        "tz": recurrence.tz,
        "day_rule": recurrence.day_rule,
        "misfire": misfire,
    }


def _columns(spot: Place) -> Changes:
    return {"due_at": spot.due_at, "not_before": spot.not_before, "ready": spot.ready}


def _placed(at: datetime | None, wanted: Wanted, *, now: datetime) -> Changes:
    """Return a fresh start at `at`: due then, with a whole retry budget."""
    spot = place(at, waits_for=wanted.waits_for, held=False, now=now)
    return {**_columns(spot), "retry_count": 0, "attempt": 0}


def _first_fire(wanted: Wanted, recurrence: Recurrence, *, now: datetime) -> Changes:
    """Place a recurrence that starts afresh: an asked time or start-up first, then its cron."""
    asked = wanted.at if wanted.at is not None else now if wanted.run_on_startup else None
    if asked is None:
        occurrence = recurrence.next_after(now)
        changes = _placed(occurrence, wanted, now=now)
    else:
        occurrence = recurrence.next_after(max(asked, now))
        changes = _placed(asked, wanted, now=now)
    return changes | {"occurrence_at": occurrence, "extra": asked is not None}


def _in_flight(existing: Existing, wanted: Wanted) -> Changes:
    """The body runs: keep the new input for afterwards, ask for one more run if one is due."""
    changes: Changes = {"next_input": wanted.input, "replaced": True, "cancelling": False}
    changes |= _policy(wanted)
    if wanted.recurrence is not None:
        changes |= _recurrence(wanted.recurrence, wanted.misfire)
        if existing.extra and existing.recurrence != effective(existing, wanted.recurrence):
            # The occurrence that this run in between waits for was the old expression's.
            changes["occurrence_at"] = None
    if wanted.recurrence is None or wanted.at is not None:
        changes |= {"rerun": True, "rerun_not_before": wanted.at}
    return changes


def _in_quarantine(existing: Existing, wanted: Wanted, *, now: datetime) -> Changes:
    """Only a person releases it, unless the bad cron was all that was wrong and it is good now."""
    if existing.reason is not Reason.BAD_CRON or wanted.recurrence is None:
        return {}
    recurrence = effective(existing, wanted.recurrence)
    if not recurrence.usable:
        return {}
    changes = _first_fire(wanted, recurrence, now=now)
    return changes | {"state": TaskState.PENDING, "reason": Reason.NONE}


def _pending(existing: Existing, wanted: Wanted, *, now: datetime) -> Changes:
    if existing.held:
        # The failed run's hook is still to run: the retry keeps its time and its count.
        spot = place(existing.due_at, waits_for=wanted.waits_for, held=True, now=now)
        return _columns(spot)
    if wanted.recurrence is None:
        if existing.recurrence is None:
            return _placed(wanted.at, wanted, now=now)
        return _extra_run(existing, wanted, now=now)
    recurrence = effective(existing, wanted.recurrence)
    if existing.recurrence != recurrence or wanted.at is not None:
        return _first_fire(wanted, recurrence, now=now)
    return _same_recurrence(existing, wanted, now=now)


def _extra_run(existing: Existing, wanted: Wanted, *, now: datetime) -> Changes:
    """One more run of a recurring task; its recurrence stays as it is."""
    asked = wanted.at if wanted.at is not None else now
    occurrence = existing.occurrence_at
    in_backoff = existing.retry_count > 0
    if wanted.waits_for or in_backoff or occurrence is None or asked <= occurrence:
        changes = _placed(wanted.at, wanted, now=now)
        # In backoff it stands for the failed occurrence, which must not run twice.
        return changes | {"extra": existing.extra or not in_backoff}
    spot = place(occurrence, waits_for=0, held=False, now=now)
    return {**_columns(spot), "extra": False, "rerun": True, "rerun_not_before": asked}


def _same_recurrence(existing: Existing, wanted: Wanted, *, now: datetime) -> Changes:
    """Registered again as it was: what is planned stays, a missed occurrence runs at start-up."""
    planned = existing.due_at if existing.due_at is not None else existing.not_before
    occurrence = existing.occurrence_at
    overdue = occurrence is None or occurrence <= now
    if wanted.run_on_startup and overdue and not existing.retry_count:
        planned = now
    spot = place(planned, waits_for=wanted.waits_for, held=False, now=now)
    return _columns(spot)
