"""Take due tasks for a runner, and give back those that must not run after all."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db import connection, transaction
from django.db.models import Count, F, Min, Q

from scheduler.models import Queue, Task
from scheduler.models.leasing import take
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
    special = Queue.objects.filter(Q(paused=True) | Q(most_running__isnull=False))
    return _take(_candidates(wish, now).exclude(queue__in=special.values("name")), wish, now=now)


def claim_limited(wish: Wish, queue_name: str, *, now: datetime) -> list[Claim]:
    """Claim tasks of a limited queue, never more than its limit over all runners."""
    candidates = _candidates(wish, now).filter(queue=queue_name)
    if not candidates.exists():
        return []
    with transaction.atomic():
        # The update is the lock: the next claim counts when this one is committed.
        free = Queue.objects.filter(name=queue_name, paused=False)
        if not free.update(claims=F("claims") + 1):
            return []
        queue = Queue.objects.get(name=queue_name)
        running = Task.objects.filter(state="running", queue=queue_name)
        room = wish.limit
        if queue.most_running is not None:
            counted = running.aggregate(count=Count("pk"))["count"]
            room = min(room, queue.most_running - counted)
        return _take(candidates, wish, now=now, limit=room)


def _candidates(wish: Wish, now: datetime) -> TaskQuerySet:
    found = Task.objects.ready_until(now + wish.skew).filter(
        kind__in=sorted(wish.kinds), suspect=wish.suspects
    )
    return found if wish.queues is None else found.filter(queue__in=sorted(wish.queues))


def _take(
    candidates: TaskQuerySet, wish: Wish, *, now: datetime, limit: int | None = None
) -> list[Claim]:
    limit = wish.limit if limit is None else limit
    if limit < 1 or not wish.kinds:
        return []
    # A write on SQLite locks the file, so an idle runner only reads.
    if connection.vendor == "sqlite" and not candidates.exists():
        return []
    return take(candidates, runner_id=wish.runner_id, limit=limit, now=now, started=wish.started)


def suspect_is_due(wish: Wish, *, now: datetime) -> bool:
    """Whether a task that must run alone waits for this runner."""
    paused = Queue.objects.filter(paused=True)
    alone = _candidates(replace(wish, suspects=True), now)
    return alone.exclude(queue__in=paused.values("name")).exists()


def claim_suspect(wish: Wish, *, now: datetime) -> list[Claim]:
    """Claim one task that must run alone; the caller holds nothing else."""
    paused = Queue.objects.filter(paused=True)
    alone = replace(wish, suspects=True, limit=1)
    return _take(_candidates(alone, now).exclude(queue__in=paused.values("name")), alone, now=now)


def limited_queues() -> list[str]:
    """Return the queues that let only so many bodies run at once."""
    rows = Queue.objects.filter(most_running__isnull=False, paused=False)
    return list(rows.values_list("name", flat=True))
