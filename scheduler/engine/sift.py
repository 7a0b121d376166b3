"""Claimed, but too late or unreadable: which of the claims really run, decided under the lease."""

import logging
from dataclasses import replace
from datetime import datetime

from django.db import transaction

from scheduler.engine import dependents
from scheduler.engine.facts import row_of
from scheduler.models import Dependency, Run, Task
from scheduler.models.leasing import Choice, choose
from scheduler.rules.claims import Claim
from scheduler.rules.columns import Changes
from scheduler.rules.misfire import LEAST_GRACE, Misfire, RunIt, SkipIt, decide
from scheduler.rules.outcomes import closed, goes_on, quarantined_for_cron
from scheduler.rules.states import TERMINAL, Outcome, Reason, TaskState
from scheduler.rules.timing import Recurrence, UnusableCronError

logger = logging.getLogger(__name__)


def sift(claims: list[Claim], *, now: datetime) -> list[Claim]:
    """Return the claims whose body is to run; the others are put where they belong."""
    choices: list[Choice] = []
    kept = [one for claim in claims if (one := _kept(claim, choices, now=now)) is not None]
    choose(choices)
    return kept


def _kept(claim: Claim, choices: list[Choice], *, now: datetime) -> Claim | None:
    if claim.recurrence is None:
        return None if _expired(claim, now=now) else claim
    try:
        claim.recurrence.require_usable()
        return _in_time(claim, claim.recurrence, choices, now=now)
    except UnusableCronError as error:
        logger.error(  # the row is at fault, a traceback says nothing
            "task quarantined", extra={"action": "task quarantined", "task": claim.task_id}
        )
        changes: Changes = {**quarantined_for_cron(error), "body_started": False}
        with transaction.atomic():
            _move(claim, changes, now=now)
        return None


def _in_time(
    claim: Claim, recurrence: Recurrence, choices: list[Choice], *, now: datetime
) -> Claim | None:
    """Apply the misfire policy to the first try of an occurrence; a choice is to be written."""
    occurrence = claim.occurrence_at
    late = now - claim.due_at > LEAST_GRACE
    if not late or not claim.is_first_try or occurrence is None:
        return claim
    match decide(claim.misfire, occurrence, recurrence.next_after, now=now):
        case RunIt(occurrence_at=chosen, missed=missed):
            if (chosen, missed) == (occurrence, 0):
                return claim
            choices.append(Choice(claim.task_id, claim.token, chosen, missed))
            return replace(claim, occurrence_at=chosen)
        case SkipIt(missed=missed):
            return _skipped(claim, missed, now=now)


def _skipped(claim: Claim, missed: int, *, now: datetime) -> Claim | None:
    with transaction.atomic():
        row = Task.objects.filter(pk=claim.task_id).under(claim.token)
        task = row.select_for_update().first()
        if task is not None and not task.replaced and not task.cancelling:
            changes: Changes = {**goes_on(row_of(task), now=now), "body_started": False}
            _record_miss(claim, missed, now=now)
            _move(claim, changes, now=now)
            return None
    # Somebody asked for it since: then it runs.
    return claim


def _expired(claim: Claim, *, now: datetime) -> bool:
    """End a one-shot that asked to be skipped rather than be late; return whether it was."""
    asked = claim.not_before
    if claim.misfire is not Misfire.SKIP or asked is None or not claim.is_first_try:
        return False
    if now - asked <= LEAST_GRACE:
        return False
    changes = closed(TaskState.CANCELLED, Reason.MISSED, now=now)
    with transaction.atomic():
        _record_miss(claim, 1, now=now)
        _move(claim, {**changes, "body_started": False}, now=now)
        Dependency.objects.filter(task_id=claim.task_id).delete()
        dependents.settle({claim.task_id: False}, now=now)
    return True


def _move(claim: Claim, changes: Changes, *, now: datetime) -> None:
    columns: dict[str, object] = {**changes, "runner": None, "updated_at": now, "attempt": 0}
    if changes.get("state") in TERMINAL or changes.get("state") is TaskState.QUARANTINED:
        columns |= {"replaced": False, "cancelling": False}
    Task.objects.filter(pk=claim.task_id).under(claim.token).update(**columns)


def _record_miss(claim: Claim, missed: int, *, now: datetime) -> None:
    Run.objects.create(
        task_id=claim.task_id,
        kind=claim.kind,
        key=claim.key,
        input=claim.input,
        lease_token=claim.token,
        attempt=claim.attempt,
        outcome=Outcome.MISSED.value,
        due_at=claim.due_at,
        occurrence_at=claim.occurrence_at,
        ended_at=now,
        missed=missed,
    )
