"""What people do to tasks and queues by hand, each act with its audit entry."""

from collections.abc import Callable
from datetime import datetime

from django.db import IntegrityError, transaction

from scheduler.engine import dependents, wakeup
from scheduler.engine.audit import record_act
from scheduler.engine.enqueue import ContentionError, compare_and_set
from scheduler.engine.facts import existing_of
from scheduler.models import Dependency, Queue, Task
from scheduler.rules import acts
from scheduler.rules.actors import SYSTEM, Act
from scheduler.rules.acts import Facts, TaskStateError
from scheduler.rules.columns import Changes
from scheduler.rules.fire import Retry
from scheduler.rules.orders import LONGEST_QUEUE, require_name, require_recurrence
from scheduler.rules.states import TERMINAL, TaskState

MOST_ROUNDS = 50
SHOWN = ("state", "due_at", "cron_override", "retry_times", "retry_min", "retry_max")

Plan = Callable[[Facts], Changes]


class NoSuchTaskError(LookupError):
    """There is no task with this id, or it was pruned."""


def cancel(task_id: int, act: Act) -> None:
    """Never run it again; those that wait for it are settled."""
    _act("cancel", task_id, lambda facts: acts.plan_cancel(facts, now=act.now), act)


def run_now(task_id: int, act: Act) -> None:
    """Run it as soon as a runner is free."""
    _act("run now", task_id, lambda facts: acts.plan_run_now(facts, now=act.now), act)


def retry_task(task_id: int, act: Act) -> None:
    """Start a task that is over once more."""
    try:
        _act("retry", task_id, lambda facts: acts.plan_retry(facts, now=act.now), act)
    except IntegrityError as error:
        raise TaskStateError(f"another task with the key of {task_id} is live already") from error


def release(task_id: int, act: Act) -> None:
    """Let a quarantined task run again."""
    _act("release", task_id, lambda facts: acts.plan_release(facts, now=act.now), act)


def set_due(task_id: int, at: datetime, act: Act) -> None:
    """Move the next run of a pending task."""
    _act("set due", task_id, lambda facts: acts.plan_due(facts, at, now=act.now), act)


def set_retry(task_id: int, retry: Retry | None, act: Act) -> None:
    """Replace the retry policy; a run that has begun keeps the one it began with."""

    def plan(facts: Facts) -> Changes:
        if facts.existing.state in TERMINAL:
            raise facts.refuse("be given another retry policy")
        return {
            "retry_times": retry.times if retry else None,
            "retry_min": retry.min if retry else None,
            "retry_max": retry.max if retry else None,
        }

    _act("set retry", task_id, plan, act)


def set_cron(task_id: int, text: str | None, act: Act) -> None:
    """Put staff's cron into force, or with None code's own again."""
    task = Task.objects.filter(pk=task_id).first()
    if task is None:
        raise NoSuchTaskError(f"there is no task {task_id}")
    base = task.cron if text is None else text
    if base is None:
        raise TaskStateError(f"task {task_id} does not recur; request it with a cron")
    recurrence = require_recurrence(base, tz=task.tz, day_rule=task.day_rule, now=act.now)
    _act(
        "set cron" if text is not None else "reset cron",
        task_id,
        lambda facts: acts.plan_cron(facts, recurrence, text, now=act.now),
        act,
    )


def _act(action: str, task_id: int, plan: Plan, act: Act) -> None:
    """Plan from the row as it is and write it, again if the row moved on meanwhile."""
    for _ in range(MOST_ROUNDS):
        with transaction.atomic():
            task = Task.objects.filter(pk=task_id).first()
            if task is None:
                raise NoSuchTaskError(f"there is no task {task_id}")
            changes = plan(Facts(task_id, existing_of(task), task.waits_for))
            if not compare_and_set(task, changes, now=act.now):
                continue
            _follow_up(task, changes, now=act.now)
            if act.actor != SYSTEM:
                _audit(action, task, act)
            return
    raise ContentionError(f"task {task_id} changed {MOST_ROUNDS} times meanwhile")


def _follow_up(task: Task, changes: Changes, *, now: datetime) -> None:
    if changes.get("state") is TaskState.CANCELLED:
        Dependency.objects.filter(task_id=task.pk).delete()
        dependents.settle({task.pk: False}, now=now)
    wakeup.announce(changes.get("due_at"), now=now)


def _audit(action: str, task: Task, act: Act) -> None:
    after = Task.objects.get(pk=task.pk)
    record_act(
        act.actor,
        action,
        object_kind="task",
        object_id=task.pk,
        before=_shown(task),
        after=_shown(after),
        reason=act.reason,
        now=act.now,
    )


def _shown(task: Task) -> dict[str, object]:
    found = {name: getattr(task, name) for name in SHOWN}
    found["due_at"] = task.due_at.isoformat() if task.due_at else None
    return found


def change_queue(
    name: str,
    action: str,
    act: Act,
    *,
    paused: bool | None = None,
    most_running: int | None = None,
) -> None:
    """Pause, resume or limit a queue; what is None stays. A limit of 0 takes the limit away."""
    require_name(name, "queue", LONGEST_QUEUE)
    with transaction.atomic():
        queue, _ = Queue.objects.get_or_create(name=name)
        before: dict[str, object] = {
            "paused": queue.paused,
            "most_running": queue.most_running,
        }
        after = dict(before)
        if paused is not None:
            after["paused"] = paused
        if most_running is not None:
            after["most_running"] = most_running or None
        Queue.objects.filter(pk=queue.pk).update(**after)
        if act.actor != SYSTEM:
            record_act(
                act.actor,
                action,
                object_kind="queue",
                object_id=name,
                before=before,
                after=after,
                reason=act.reason,
                now=act.now,
            )
        wakeup.announce_now()
