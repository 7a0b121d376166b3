"""Tasks that do nothing, and a runner in this process to run them."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from django.db import connection, transaction
from django.utils import timezone

from scheduler.engine import runners
from scheduler.engine.loop import Clocks, Loop
from scheduler.models import Dependency, Run, Task
from scheduler.registry import REGISTRY, Handler, Kind
from scheduler.rules.timing import Recurrence

NOOP = "bench.noop"
PAST = datetime(2020, 1, 1, tzinfo=UTC)


@contextmanager
def only_kind(name: str, handler: Handler) -> Iterator[None]:
    """Let this process know one kind and no other."""
    kinds = dict(REGISTRY.kinds)
    REGISTRY.kinds.clear()
    REGISTRY.add(Kind(name, handler))
    try:
        yield
    finally:
        REGISTRY.kinds.clear()
        REGISTRY.kinds.update(kinds)


def nothing(_fire: object) -> None:
    """Do nothing, as a body."""


def empty() -> None:
    """Forget all tasks and their history."""
    with transaction.atomic():
        Dependency.objects.all().delete()
        for model in (Run, Task):
            table = model._meta.db_table  # noqa: SLF001  # public, whatever its name says
            with connection.cursor() as cursor:
                verb = (
                    "TRUNCATE {} CASCADE" if connection.vendor == "postgresql" else "DELETE FROM {}"
                )
                cursor.execute(verb.format(table))


def fill(count: int, *, kind: str = NOOP) -> None:
    """Make `count` due one-shot tasks in the emptied tables."""
    empty()
    now = timezone.now()
    Task.objects.bulk_create((noop(now, kind=kind) for _ in range(count)), batch_size=1000)


def noop(now: datetime, *, kind: str = NOOP) -> Task:
    """Return a due one-shot task that is not stored yet."""
    return Task(kind=kind, due_at=PAST, ready=True, generation=1, created_at=now, updated_at=now)


def fill_recurring(count: int, *, due_at: datetime, cron: str = "0 4 * * *") -> None:
    """Make `count` recurring tasks that are next due at one moment."""
    empty()
    now = timezone.now()
    Task.objects.bulk_create(
        (
            Task(
                kind=NOOP,
                key=str(number),
                cron=cron,
                due_at=due_at,
                not_before=due_at,
                occurrence_at=due_at,
                generation=1,
                created_at=now,
                updated_at=now,
            )
            for number in range(count)
        ),
        batch_size=1000,
    )


def last_fire(cron: str, now: datetime) -> datetime:
    """Return a moment in the past at which a daily expression was due."""
    found = Recurrence(cron).next_after(now - timedelta(days=1))
    assert found is not None
    return found


def make_loop(*, workers: int = 1) -> Loop:
    """Start a runner in this process; the caller runs it."""
    runner = runners.sign_on("bench", workers=workers, queues=None)
    return Loop(runner, Clocks(timezone.now, time.monotonic), workers=workers)


def drain(*, workers: int = 1) -> float:
    """Run everything that is due; return the seconds it took."""
    loop = make_loop(workers=workers)
    began = time.perf_counter()
    loop.run(until_idle=True)
    return time.perf_counter() - began
