"""Take due tasks for a runner, and give back those that must not run after all."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache

from django.db import connection, transaction
from django.db.models import Count, F, Min, Q

from scheduler.models import Queue, Task
from scheduler.models.leasing import Selection, select
from scheduler.models.tasks import TaskQuerySet
from scheduler.rules.claims import Claim

# Who enqueues judges "due now" by another clock than the runner's; a ready task this far ahead is
# taken all the same. Far more than that, the clock was set back, and it waits.
SKEW = timedelta(seconds=5)
BATCH = 100
PROMOTED_AT_ONCE = 5000


@dataclass(frozen=True, slots=True)
class Wish:
    """What a runner wants next: at most `limit` tasks of these kinds and queues."""

    runner_id: int
    limit: int
    kinds: Collection[str]
    # None = all queues.
    queues: Collection[str] | None = None
    suspects: bool = False
    skew: timedelta = SKEW
    # Whether the bodies go to workers at once, so that a crash from now on makes them suspects.
    started: bool = True


def promote(*, now: datetime) -> int:
    """Move tasks that have become due into the index that runners poll; return how many."""
    due = Task.objects.timed().filter(due_at__lte=now)
    if not due.exists():
        return 0
    with transaction.atomic():
        first = due.order_by("due_at").select_for_update(skip_locked=True).values("pk")
        return due.filter(pk__in=first[:PROMOTED_AT_ONCE]).update(ready=True)


def next_due() -> datetime | None:
    """Return when the next task becomes due that is not yet, or None."""
    found: datetime | None = Task.objects.timed().aggregate(first=Min("due_at"))["first"]
    return found


def claim(wish: Wish, *, now: datetime) -> list[Claim]:
    """Claim tasks of queues that are neither paused nor limited, in claim order."""
    return _take(wish, now=now)


def claim_limited(wish: Wish, queue_name: str, *, now: datetime) -> list[Claim]:
    """Claim tasks of a limited queue, never more than its limit over all runners."""
    if not _is_due(wish, now=now, queue_name=queue_name):
        return []
    with transaction.atomic():
        room = _room(queue_name, most=wish.limit)
        return _take(replace(wish, limit=room), now=now, queue_name=queue_name)


def claim_one(wish: Wish, task_id: int, *, now: datetime) -> list[Claim]:
    """Claim this one task, a suspect too, if it is due and its queue allows it."""
    rows = Task.objects.filter(pk=task_id, ready=True, kind__in=wish.kinds)
    queue_name = rows.values_list("queue", flat=True).first()
    if queue_name is None:
        return []
    with transaction.atomic():
        if Queue.objects.filter(name=queue_name).exists() and not _room(queue_name, most=1):
            return []
        selection = select(lambda until: Task.objects.ready_until(until).filter(pk=task_id), 1)
        until = now + wish.skew
        return selection.take(until, runner_id=wish.runner_id, now=now, started=wish.started)


def _room(queue_name: str, *, most: int) -> int:
    """Return how many more bodies of a queue may run, at most `most`; lock it until the commit."""
    # The update is the lock: the next claim counts when this one is committed.
    if not Queue.objects.filter(name=queue_name, paused=False).update(claims=F("claims") + 1):
        return 0
    queue = Queue.objects.get(name=queue_name)
    if queue.most_running is None:
        return most
    running = Task.objects.filter(state="running", queue=queue_name)
    counted: int = running.aggregate(count=Count("pk"))["count"]
    return max(0, min(most, queue.most_running - counted))


def suspect_is_due(wish: Wish, *, now: datetime) -> bool:
    """Whether a task that must run alone waits for this runner."""
    return _is_due(replace(wish, suspects=True), now=now)


def claim_suspect(wish: Wish, *, now: datetime) -> list[Claim]:
    """Claim one task that must run alone; the caller holds nothing else."""
    return _take(replace(wish, suspects=True, limit=1), now=now)


def _is_due(wish: Wish, *, now: datetime, queue_name: str | None = None) -> bool:
    if not wish.kinds:
        return False
    selection = _selection_of(replace(wish, limit=1), queue_name)
    return not selection.is_empty(now + wish.skew)


def _take(wish: Wish, *, now: datetime, queue_name: str | None = None) -> list[Claim]:
    if wish.limit < 1 or not wish.kinds:
        return []
    selection, until = _selection_of(wish, queue_name), now + wish.skew
    # A write on SQLite locks the file, so an idle runner only reads.
    if connection.vendor == "sqlite" and selection.is_empty(until):
        return []
    return selection.take(until, runner_id=wish.runner_id, now=now, started=wish.started)


def _selection_of(wish: Wish, queue_name: str | None) -> Selection:
    queues = None if wish.queues is None else tuple(sorted(wish.queues))
    kinds = tuple(sorted(wish.kinds))
    return _selection(kinds, queues, wish.suspects, queue_name, wish.limit)


@lru_cache(maxsize=512)
def _selection(
    kinds: tuple[str, ...],
    queues: tuple[str, ...] | None,
    suspects: bool,
    queue_name: str | None,
    limit: int,
) -> Selection:
    """Compile a wish; writing the SQL anew would cost as much as running it."""

    def candidates(until: datetime) -> TaskQuerySet:
        found = Task.objects.ready_until(until).filter(kind__in=kinds, suspect=suspects)
        if queues is not None:
            found = found.filter(queue__in=queues)
        if queue_name is not None:
            return found.filter(queue=queue_name)
        # A limit is no matter for a suspect, which runs alone.
        special = Q(paused=True) if suspects else Q(paused=True) | Q(most_running__isnull=False)
        return found.exclude(queue__in=Queue.objects.filter(special).values("name"))

    return select(candidates, limit)


def limited_queues() -> list[str]:
    """Return the queues that let only so many bodies run at once."""
    rows = Queue.objects.filter(most_running__isnull=False, paused=False)
    return list(rows.values_list("name", flat=True))
