"""End runs: history, the task's next state, its dependents, in one transaction.

Only the holder of a lease may do that: a row whose token has moved on is refused.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db import transaction

from scheduler.engine import dependents
from scheduler.engine.facts import row_of
from scheduler.engine.hooks import HookCall, wants_attempt_hook, wants_failed_hook
from scheduler.engine.success import end_quickly
from scheduler.models import Dependency, Run, Task
from scheduler.rules.claims import Claim, Ending
from scheduler.rules.columns import Changes
from scheduler.rules.outcomes import Failed, Succeeded, Transition, conclude
from scheduler.rules.states import TERMINAL, Outcome, TaskState

logger = logging.getLogger(__name__)


class LostLeaseError(Exception):
    """Somebody else holds the task by now, or ended it; nothing was changed."""


@dataclass(slots=True)
class Finished:
    """What became of some endings."""

    done: list[Claim] = field(default_factory=list)
    lost: list[Claim] = field(default_factory=list)
    hooks: list[HookCall] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _End:
    """One ending with the decision about it."""

    ending: Ending
    transition: Transition
    run: Run | None
    hook: bool


def finish(endings: Sequence[Ending], *, runner_name: str, now: datetime) -> Finished:
    """Write how bodies ended. Those that lost their lease are reported, and change nothing."""
    report = Finished()
    with transaction.atomic():
        others = end_quickly(endings, runner_name=runner_name, now=now)
        ends = list(_decide(others, report, runner_name=runner_name, now=now)) if others else []
        Run.objects.bulk_create([end.run for end in ends if end.run is not None])
        _write(ends, now=now)
        closed = [end.ending.claim.task_id for end in ends if _is_over(end.transition)]
        if any(end.transition.changes.get("waits_for") == 0 for end in ends):
            Dependency.objects.filter(task_id__in=closed).delete()
        dependents.settle(
            {
                end.ending.claim.task_id: end.transition.succeeded
                for end in ends
                if end.transition.settles
            },
            now=now,
        )
    lost = {claim.task_id for claim in report.lost}
    report.done = [one.claim for one in endings if one.claim.task_id not in lost]
    report.hooks = [
        HookCall(end.ending.claim.task_id, end.ending.claim.token, end.run.pk)
        for end in ends
        if end.hook and end.run is not None
    ]
    _recall(report)
    _tell(ends, report)
    return report


def _tell(ends: Sequence[_End], report: Finished) -> None:
    for end in ends:
        # A body that requests itself each time goes on for ever; this is where one sees it.
        if end.transition.succeeded and not end.transition.settles:
            claim = end.ending.claim
            logger.info(
                "runs once more, it was requested while it ran",
                extra={"action": "rerun", "task": claim.task_id, "kind": claim.kind},
            )
    for claim in report.lost:
        logger.warning(
            "lease lost, outcome discarded",
            extra={"action": "lease lost", "task": claim.task_id, "token": claim.token},
        )


def _recall(report: Finished) -> None:
    """Sort out endings of an earlier try whose commit succeeded although its answer was lost."""
    if not report.lost:
        return
    by_token = {(claim.task_id, claim.token): claim for claim in report.lost}
    runs = Run.objects.filter(task_id__in=[task_id for task_id, _ in by_token])
    runs = runs.exclude(outcome=Outcome.CRASHED.value)
    for run in runs:
        claim = by_token.get((run.task_id, run.lease_token))
        if claim is None:
            continue
        report.lost.remove(claim)
        report.done.append(claim)
        if Task.objects.filter(pk=run.task_id, hook_run=run.pk, lease_token=claim.token).exists():
            report.hooks.append(HookCall(run.task_id, claim.token, run.pk))


def finish_one(ending: Ending, *, runner_name: str, now: datetime) -> Finished:
    """Write how one body ended; raise LostLeaseError if it was not ours any more."""
    report = finish([ending], runner_name=runner_name, now=now)
    if report.lost:
        raise LostLeaseError(f"task {ending.claim.task_id}, token {ending.claim.token}")
    return report


def _is_over(transition: Transition) -> bool:
    return transition.changes.get("state") in TERMINAL


def _decide(
    endings: Sequence[Ending], report: Finished, *, runner_name: str, now: datetime
) -> Iterable[_End]:
    """Pair each ending with its row, locked until the commit, and decide what it means."""
    ids = [ending.claim.task_id for ending in endings]
    rows = {
        row.pk: row
        for row in Task.objects.filter(pk__in=ids, state=TaskState.RUNNING.value)
        .order_by("pk")
        .select_for_update(no_key=True)
    }
    for ending in endings:
        row = rows.get(ending.claim.task_id)
        if row is None or row.lease_token != ending.claim.token:
            report.lost.append(ending.claim)
            continue
        transition = conclude(ending.ended, row_of(row), ending.claim.retry, now=now)
        hook = _has_hook(ending.claim.kind, transition)
        silent = isinstance(ending.ended, Succeeded) and ending.ended.silent
        run = None if silent else _run(ending, row, transition, runner_name, hook=hook)
        yield _End(ending, transition, run, hook)


def _has_hook(kind_name: str, transition: Transition) -> bool:
    if transition.hook_count is None:
        return False
    if transition.outcome is Outcome.RETRYING:
        return wants_attempt_hook(kind_name)
    return wants_failed_hook(kind_name)


def _run(ending: Ending, row: Task, transition: Transition, runner_name: str, *, hook: bool) -> Run:
    claim, ended = ending.claim, ending.ended
    return Run(
        task_id=claim.task_id,
        kind=claim.kind,
        key=claim.key,
        input=claim.input,
        lease_token=claim.token,
        attempt=claim.attempt,
        outcome=transition.outcome.value,
        due_at=claim.due_at,
        occurrence_at=claim.fire.occurrence_at,
        started_at=claim.started_at,
        ended_at=ending.ended_at,
        runner_name=runner_name,
        error=ended.error if isinstance(ended, Failed) else "",
        trace=ended.trace if isinstance(ended, Failed) else "",
        result=ended.result if isinstance(ended, Succeeded) else None,
        missed=row.missed,
        dropped_request=transition.dropped_request,
        hook_count=transition.hook_count if hook else None,
    )


def _write(ends: Sequence[_End], *, now: datetime) -> None:
    """Write the transitions; rows that change alike are written together."""
    alike: dict[str, tuple[dict[str, object], list[int]]] = {}
    for end in ends:
        columns = _columns(end, now=now)
        _, ids = alike.setdefault(repr(columns), (columns, []))
        ids.append(end.ending.claim.task_id)
    for columns, ids in alike.values():
        # Locked above, with the right token; nobody can have moved them since.
        Task.objects.filter(pk__in=ids, state=TaskState.RUNNING.value).update(**columns)


def _columns(end: _End, *, now: datetime) -> dict[str, object]:
    changes: Changes = end.transition.changes
    columns: dict[str, object] = {**changes, "missed": 0, "updated_at": now}
    if end.hook and end.run is not None:
        # Still under the lease until its hook has run.
        return columns | {"hook_run": end.run.pk, "ready": False}
    return columns | {"runner": None}
