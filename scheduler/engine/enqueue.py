"""A request becomes a row: insert, overwrite or absorb, in one transaction."""

from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import F

from scheduler.engine import dependents, wakeup
from scheduler.engine.facts import existing_of
from scheduler.models import Dependency, Task
from scheduler.rules.columns import Changes
from scheduler.rules.graph import Waits, refuse_cycle, still_open
from scheduler.rules.orders import Order
from scheduler.rules.requests import plan_insert, plan_update
from scheduler.rules.states import TaskState

# Each lost round means that somebody else moved the row on, so a few are plenty.
MOST_ROUNDS = 50


class ContentionError(Exception):
    """The row changed under every attempt to update it."""


class _LostError(Exception):
    """The row changed between reading and writing; nothing of this attempt stays."""


def enqueue(order: Order, *, now: datetime) -> int:
    """Put an order into the queue; return the id of its task."""
    for _ in range(MOST_ROUNDS):
        try:
            with transaction.atomic():
                return _attempt(order, now=now)
        except _LostError:
            continue
    raise ContentionError(f"{order.kind} {order.key}: changed {MOST_ROUNDS} times meanwhile")


def _attempt(order: Order, *, now: datetime) -> int:
    existing = None
    if order.key is not None:
        existing = live_task(order.kind, order.key)
    if existing is None:
        return _insert(order, now=now)
    return _update(existing, order, now=now)


def live_task(kind: str, key: str) -> Task | None:
    """Return the live task of a key as it is now, or None."""
    return Task.objects.of_key(kind, key).first()


def _insert(order: Order, *, now: datetime) -> int:
    waits = _waits(order)
    columns = plan_insert(order.wanted.waiting_for(len(waits.open)), now=now)
    try:
        task = Task.objects.create(
            kind=order.kind,
            key=order.key,
            generation=1,
            created_at=now,
            updated_at=now,
            **columns,
        )
    except IntegrityError as error:
        if not _is_taken(error):
            raise
        raise _LostError from error
    _add_edges(task.pk, order, waits, now=now)
    wakeup.announce(columns.get("due_at"), now=now)
    return task.pk


def _is_taken(error: IntegrityError) -> bool:
    """Whether another request made the live row of this key meanwhile."""
    # PostgreSQL names the constraint, SQLite its columns.
    return "one_live_task_per_key" in str(error) or "scheduler_task.key" in str(error)


def _update(task: Task, order: Order, *, now: datetime) -> int:
    facts = existing_of(task)
    if plan_update(facts, order.wanted, now=now) is None:
        return task.pk
    if order.depends_on:
        Dependency.objects.lock_the_graph()
        refuse_cycle(task.pk, order.depends_on, Dependency.objects.dependencies_of)
    waits = _waits(order)
    changes = plan_update(facts, order.wanted.waiting_for(len(waits.open)), now=now)
    assert changes is not None  # dependencies do not turn a request into nothing
    if task.waits_for:
        # Before the row itself: a dependency that settles now takes the edge first, then the row.
        Dependency.objects.filter(task_id=task.pk).delete()
    if not compare_and_set(task, changes, now=now):
        raise _LostError
    _add_edges(task.pk, order, waits, now=now)
    wakeup.announce(changes.get("due_at"), now=now)
    return task.pk


def compare_and_set(task: Task, changes: Changes, *, now: datetime) -> bool:
    """Write `changes` if nobody claimed, ended or re-requested the task since it was read."""
    return bool(
        Task.objects.filter(
            pk=task.pk,
            state=task.state,
            lease_token=task.lease_token,
            generation=task.generation,
            hook_run=task.hook_run,
        ).update(generation=F("generation") + 1, updated_at=now, **changes)
    )


def _waits(order: Order) -> Waits:
    """Return what is still open of the dependencies, which stay as they are until the commit.

    Locked in id order: a dependency that settles meanwhile either is seen settled here, or sees
    the edge that is about to be written.
    """
    if not order.depends_on:
        return Waits((), ())
    rows = Task.objects.filter(pk__in=order.depends_on).order_by("pk")
    states = rows.select_for_update(no_key=True).values_list("pk", "state")
    return still_open(
        order.depends_on,
        {pk: TaskState(state) for pk, state in states},
        last_issued=Task.objects.last_issued(),
        require_success=order.require_success,
    )


def _add_edges(task_id: int, order: Order, waits: Waits, *, now: datetime) -> None:
    Dependency.objects.bulk_create(
        (
            Dependency(task_id=task_id, dependency_id=one, require_success=order.require_success)
            for one in waits.open
        ),
        batch_size=1000,
    )
    if waits.failed:
        dependents.fail([task_id], waits.failed[0], now=now)
