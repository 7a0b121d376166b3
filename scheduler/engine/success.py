"""End the runs that went well: decided from the claim, written if nothing came in between."""

from collections.abc import Sequence
from datetime import datetime

from scheduler.engine import dependents
from scheduler.models.ending import Next, close, go_on, record
from scheduler.rules.claims import Claim, Ending
from scheduler.rules.outcomes import Row, Succeeded, conclude
from scheduler.rules.states import TaskState


def end_quickly(endings: Sequence[Ending], *, runner_name: str, now: datetime) -> list[Ending]:
    """End the plain successes among `endings`; return all others, untouched.

    Call it in the transaction that ends the others.
    """
    recorded: dict[int, tuple[Ending, object]] = {}
    nexts: dict[int, Next] = {}
    for ending in endings:
        ended = ending.ended
        if not isinstance(ended, Succeeded):
            continue
        following = _next(ending, ended, now=now)
        if following is not None:
            nexts[ending.claim.task_id] = following
        elif ending.claim.recurrence is not None or ended.silent:
            continue
        if not ended.silent:
            recorded[ending.claim.task_id] = (ending, ended.result)
    runs = record(recorded, runner_name=runner_name)
    awaited = close([run for task, run in runs.items() if task not in nexts], now=now)
    moved = go_on([one for task, one in nexts.items() if _is_ours(one, task, runs)], now=now)
    done = set(runs) | moved
    dependents.settle(dict.fromkeys([*awaited, *moved], True), now=now)
    return [ending for ending in endings if ending.claim.task_id not in done]


def _is_ours(one: Next, task_id: int, runs: dict[int, int]) -> bool:
    ended = one.ending.ended
    return task_id in runs or (isinstance(ended, Succeeded) and ended.silent)


def _next(ending: Ending, ended: Succeeded, *, now: datetime) -> Next | None:
    """Return where a recurring task goes on, or None if it does not simply do so."""
    if ending.claim.recurrence is None:
        return None
    changes = conclude(ended, _row(ending.claim), None, now=now).changes
    due_at = changes.get("due_at")
    if changes.get("state") is not TaskState.PENDING or due_at is None:
        return None
    return Next(ending, ended.result, due_at, ready=changes["ready"])


def _row(claim: Claim) -> Row:
    """Return the row as the claim saw it."""
    return Row(
        recurrence=claim.recurrence,
        misfire=claim.misfire,
        occurrence_at=claim.occurrence_at,
        extra=claim.extra,
        retry_count=claim.retry_count,
        replaced=False,
        next_input=None,
        rerun=False,
        rerun_not_before=None,
        dropped=0,
        cancelling=False,
        waits_for=0,
    )
