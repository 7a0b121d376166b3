"""A task settled: free those that wait for it, or fail those that needed its success."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from django.db.models import Case, F, Q, Value, When
from django.db.models.functions import Coalesce, Greatest

from scheduler.engine import wakeup
from scheduler.engine.facts import row_of
from scheduler.engine.hooks import wants_failed_hook
from scheduler.models import Dependency, Run, Task
from scheduler.rules.outcomes import Failed, conclude
from scheduler.rules.states import Outcome, Reason, TaskState


def settle(settled: Mapping[int, bool], *, now: datetime) -> None:
    """Tell the dependents of tasks that settled: id to whether it succeeded.

    Call it in the transaction that settles them, after their rows are written.
    """
    while settled:
        edges = list(Dependency.objects.waiting_for(settled))
        if not edges:
            return
        Dependency.objects.filter(pk__in=[edge.pk for edge in edges]).delete()
        failed = {
            edge.task_id: edge.dependency_id
            for edge in edges
            if edge.require_success and not settled[edge.dependency_id]
        }
        freed = Counter(edge.task_id for edge in edges if edge.task_id not in failed)
        _release(freed, now=now)
        settled = _fail_all(failed, now=now)


def fail(task_ids: Iterable[int], dependency_id: int, *, now: datetime) -> None:
    """Fail pending tasks because `dependency_id` did not succeed, and whoever needs them."""
    settle(_fail_all(dict.fromkeys(task_ids, dependency_id), now=now), now=now)


def _release(freed: Counter[int], *, now: datetime) -> None:
    """Count down what each task waits for; those at zero become due at their own time."""
    if not freed:
        return
    # In one order everywhere, so that two of these never wait for each other.
    list(Task.objects.filter(pk__in=freed).order_by("pk").select_for_update().values_list("pk"))
    by_count: dict[int, list[int]] = {}
    for task_id, count in freed.items():
        by_count.setdefault(count, []).append(task_id)
    for count, task_ids in by_count.items():
        last = Q(state=TaskState.PENDING.value, waits_for=count)
        may_start = Q(not_before=None) | Q(not_before__lte=now)
        Task.objects.live().filter(pk__in=task_ids).update(
            waits_for=F("waits_for") - count,
            due_at=Case(
                When(last, then=Greatest(Coalesce(F("not_before"), Value(now)), Value(now))),
                default=F("due_at"),
            ),
            ready=Case(
                When(last & may_start & Q(hook_run=None), then=Value(True)),
                default=F("ready"),
            ),
            updated_at=now,
        )
    wakeup.announce_now()


def _fail_all(failed: Mapping[int, int], *, now: datetime) -> dict[int, bool]:
    """End tasks whose dependency did not succeed; return them as settled without success."""
    if not failed:
        return {}
    # Edges before rows, as everywhere: nothing else waits for these any more.
    Dependency.objects.filter(task_id__in=failed).delete()
    rows = Task.objects.live().filter(pk__in=failed).order_by("pk").select_for_update()
    ended: dict[int, bool] = {}
    for row in rows:
        if row.state == TaskState.PENDING.value:
            _end(row, f"task {failed[row.pk]} did not succeed", now=now)
            ended[row.pk] = False
        else:
            # A run goes on; the further one that needed the success is dropped.
            Task.objects.filter(pk=row.pk).update(
                waits_for=0, rerun=False, rerun_not_before=None, dropped=F("dropped") + 1
            )
    return ended


def _end(row: Task, error: str, *, now: datetime) -> None:
    """Record a run that did not take place: the task is over, or waits for its next occurrence."""
    facts = replace(row_of(row), waits_for=0)
    transition = conclude(Failed(error, permanent=True), facts, None, now=now)
    has_hook = wants_failed_hook(row.kind)
    token = row.lease_token + 1
    run = Run.objects.create(
        task_id=row.pk,
        kind=row.kind,
        key=row.key,
        input=row.input,
        lease_token=token,
        attempt=row.attempt,
        outcome=Outcome.NOT_RUN.value,
        due_at=row.not_before,
        occurrence_at=row.occurrence_at,
        ended_at=now,
        error=error,
        hook_count=row.retry_count if has_hook else None,
    )
    columns: dict[str, object] = {
        **transition.changes,
        "reason": Reason.DEPENDENCY_FAILED,
        "waits_for": 0,
        "lease_token": token,
        "updated_at": now,
    }
    if has_hook:
        columns |= {"hook_run": run.pk, "ready": False, "runner": None}
    Task.objects.filter(pk=row.pk).update(**columns)
