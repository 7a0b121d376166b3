"""Call a kind's hooks after the failure is committed, at least once.

The run whose hook is still to be called stands in the task's row. Its runner calls it at once;
if that runner is gone, any other does.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Case, F, Q, Value, When
from django.db.models.functions import Now

from scheduler.models import Run, Task
from scheduler.registry import REGISTRY, Hook
from scheduler.rules.fire import Fire
from scheduler.rules.states import Outcome, TaskState

TAKEN_AT_ONCE = 20


@dataclass(frozen=True, slots=True)
class HookCall:
    """A hook to call: of which task, under which lease, about which run."""

    task_id: int
    token: int
    run_id: int


def wants_failed_hook(kind_name: str) -> bool:
    """Whether a kind is told when a task fails for good."""
    kind = REGISTRY.kinds.get(kind_name)
    return kind is not None and kind.on_failed is not None


def wants_attempt_hook(kind_name: str) -> bool:
    """Whether a kind is told when a run fails that is tried again."""
    kind = REGISTRY.kinds.get(kind_name)
    return kind is not None and kind.on_attempt_failed is not None


def take_orphans(runner_id: int) -> list[HookCall]:
    """Take hooks that nobody is about to call, of kinds that are known here."""
    orphans = Task.objects.filter(
        hook_run__isnull=False, runner=None, kind__in=sorted(REGISTRY.kinds)
    ).order_by("hook_run")
    rows = list(orphans.values_list("pk", "lease_token", "hook_run")[:TAKEN_AT_ONCE])
    return [
        HookCall(task_id, token + 1, run_id or 0)
        for task_id, token, run_id in rows
        if Task.objects.filter(pk=task_id, lease_token=token, runner=None, hook_run=run_id).update(
            lease_token=F("lease_token") + 1, runner_id=runner_id, beat_at=Now()
        )
    ]


def let_go(runner_id: int, *, keep: Collection[int] = ()) -> int:
    """Leave the hooks of a runner to whoever comes next, but for those of the tasks in `keep`."""
    return (
        Task.objects.filter(hook_run__isnull=False, runner_id=runner_id)
        .exclude(state=TaskState.RUNNING.value)
        .exclude(pk__in=keep)
        .update(runner=None)
    )


def prepare(call: HookCall) -> tuple[Hook, Fire, int, str] | None:
    """Return the hook and its arguments, or None if there is nothing to call any more."""
    run = Run.objects.filter(pk=call.run_id).first()
    kind = REGISTRY.kinds.get(run.kind) if run is not None else None
    if run is None or kind is None:
        return None
    retrying = run.outcome == Outcome.RETRYING.value
    hook = kind.on_attempt_failed if retrying else kind.on_failed
    if hook is None:
        return None
    due_at = run.due_at or run.ended_at
    fire = Fire(
        task_id=run.task_id,
        kind=run.kind,
        key=run.key,
        input=run.input,
        attempt=run.attempt,
        due_at=due_at,
        occurrence_at=run.occurrence_at,
        now=run.started_at or run.ended_at,
    )
    return hook, fire, run.hook_count or 0, run.error


def settled(call: HookCall, *, now: datetime) -> bool:
    """Note that a hook was called; the task may be taken again."""
    may_start = Q(state=TaskState.PENDING.value, due_at__lte=now)
    return bool(
        Task.objects.filter(pk=call.task_id, lease_token=call.token, hook_run=call.run_id).update(
            hook_run=None,
            runner=None,
            ready=Case(When(may_start, then=Value(True)), default=F("ready")),
            updated_at=now,
        )
    )
