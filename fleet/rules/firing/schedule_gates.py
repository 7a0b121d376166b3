"""The gates that ask about the schedule as a whole, in their order."""

from collections.abc import Callable
from datetime import datetime

from fleet.rules.firing.facts import Snapshot
from fleet.rules.firing.reasons import Gate, Reason
from fleet.rules.windows import Active, Closed


def _gate(
    reason: Reason, *, is_open: bool, detail: str = "", opens_at: datetime | None = None
) -> Gate:
    return Gate(reason, is_open, detail, None if is_open else opens_at)


def _frozen(facts: Snapshot) -> Gate:
    freeze = facts.freeze
    return _gate(
        Reason.FROZEN, is_open=not freeze.frozen, detail=freeze.words, opens_at=freeze.until
    )


def _disabled(facts: Snapshot) -> Gate:
    return _gate(Reason.DISABLED, is_open=facts.is_enabled)


def _runs_on_agent(facts: Snapshot) -> Gate:
    detail = "the PCs fire this schedule themselves" if facts.runs_on_agent else ""
    return _gate(Reason.RUNS_ON_AGENT, is_open=not facts.runs_on_agent, detail=detail)


def _outside_active(facts: Snapshot) -> Gate:
    active, now = facts.timetable.active, facts.now
    return _gate(
        Reason.OUTSIDE_ACTIVE,
        is_open=active.covers(now),
        detail=active.unreadable or _period(active),
        opens_at=active.opens_at(now),
    )


def _period(active: Active) -> str:
    parts = [("from", active.starts_at), ("until", active.ends_at)]
    return " ".join(f"{word} {at:%Y-%m-%d %H:%M} UTC" for word, at in parts if at)


def _skip_date(facts: Snapshot) -> Gate:
    hours, tz = facts.timetable.hours, facts.timetable.tz
    closed = hours.closed_by(facts.now, tz)
    is_open = closed not in {Closed.SKIP_DATE, Closed.BAD_SKIP_DATE}
    return _gate(
        Reason.SKIP_DATE,
        is_open=is_open,
        detail=hours.bad_skip_date or f"{facts.now.astimezone(tz):%Y-%m-%d} in {tz.key}",
        opens_at=None if is_open else hours.opens_at(facts.now, tz),
    )


def _outside_window(facts: Snapshot) -> Gate:
    hours, tz = facts.timetable.hours, facts.timetable.tz
    window = hours.window
    is_open = hours.bad_window is None and (window is None or window.is_open_at(facts.now, tz))
    return _gate(
        Reason.OUTSIDE_WINDOW,
        is_open=is_open,
        detail=hours.bad_window or (f"{window} in {tz.key}" if window else "no window"),
        opens_at=None if is_open else hours.opens_at(facts.now, tz),
    )


def _job_missing(facts: Snapshot) -> Gate:
    return _gate(Reason.JOB_MISSING, is_open=facts.job is not None)


def _job_revoked(facts: Snapshot) -> Gate:
    return _gate(Reason.JOB_REVOKED, is_open=facts.job is None or not facts.job.is_revoked)


def _not_approved(facts: Snapshot) -> Gate:
    is_open = facts.job is None or facts.job.has_runnable_revision
    return _gate(
        Reason.NOT_APPROVED,
        is_open=is_open,
        detail="" if is_open else "no revision of the job is approved",
    )


def _bad_deadline(facts: Snapshot) -> Gate:
    problem = facts.unreadable_deadline
    return _gate(Reason.BAD_DEADLINE, is_open=problem is None, detail=problem or "")


def _no_target(facts: Snapshot) -> Gate:
    if not facts.has_target:
        return _gate(Reason.NO_TARGET, is_open=False, detail="the target names nobody")
    # While the members are being computed, none written yet does not mean none.
    is_empty = facts.roster == 0 and not facts.is_computing
    return _gate(
        Reason.NO_TARGET,
        is_open=not is_empty,
        detail="the target has no members" if is_empty else "",
    )


def _computing_target(facts: Snapshot) -> Gate:
    return _gate(Reason.COMPUTING_TARGET, is_open=not facts.is_computing)


SCHEDULE_GATES: tuple[Callable[[Snapshot], Gate], ...] = (
    _frozen,
    _disabled,
    _runs_on_agent,
    _outside_active,
    _skip_date,
    _outside_window,
    _job_missing,
    _job_revoked,
    _not_approved,
    _bad_deadline,
    _no_target,
    _computing_target,
)
