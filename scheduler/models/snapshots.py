"""One look at many rows: reads that agree with each other, and counts that end early.

The ORM can say neither an isolation level, nor UNION of bounded queries on SQLite, nor recursion.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.db.models import Min, QuerySet

from scheduler.models.leasing import moment_of
from scheduler.models.tasks import Task

# A step for each priority that is in use, along the index that runners poll.
_OLDEST_READY = """
WITH RECURSIVE level(priority) AS (
    SELECT MAX(priority) FROM scheduler_task WHERE ready
    UNION ALL
    SELECT (SELECT MAX(priority) FROM scheduler_task
            WHERE ready AND priority < level.priority)
    FROM level WHERE level.priority IS NOT NULL
)
SELECT MIN((
    SELECT due_at FROM scheduler_task
    WHERE ready AND priority = level.priority
      AND kind IN ({kinds}) AND queue NOT IN ({queues})
    ORDER BY due_at LIMIT 1
)) FROM level WHERE level.priority IS NOT NULL
"""


@contextmanager
def snapshot() -> Iterator[None]:
    """Read everything inside as it was at one moment; write nothing.

    Inside a transaction of the caller's it is that transaction which decides.
    """
    if connection.in_atomic_block:
        yield
    elif connection.vendor == "postgresql":
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield
    else:
        yield from _deferred()


def _deferred() -> Iterator[None]:
    """Begin a transaction that takes no lock: Django's own would keep every writer out."""
    with connection.cursor() as cursor:
        cursor.execute("BEGIN DEFERRED")
        try:
            yield
        finally:
            cursor.execute("ROLLBACK")


def tally(parts: Mapping[str, QuerySet[Any]], *, most: int) -> dict[str, dict[str, int]]:
    """Count rows by part and kind, at most `most` of each part, in one statement."""
    selects: list[str] = []
    params: list[Any] = []
    for name, rows in parts.items():
        select, given = rows.order_by().values("kind")[:most].query.sql_with_params()
        selects.append(f"SELECT CAST(%s AS varchar(20)) AS part, kind FROM ({select}) AS rows")  # noqa: S608  # the ORM wrote it
        params += [name, *given]
    union = " UNION ALL ".join(selects)
    found: dict[str, dict[str, int]] = {name: {} for name in parts}
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT part, kind, COUNT(*) FROM ({union}) AS parts GROUP BY part, kind",  # noqa: S608
            params,
        )
        for part, kind, count in cursor.fetchall():
            found[part][kind] = count
    return found


def oldest_due(
    now: datetime, *, kinds: Collection[str], except_queues: Collection[str]
) -> datetime | None:
    """Return the earliest time at which a task of these kinds should have been taken, if any."""
    waiting = Task.objects.timed().filter(due_at__lte=now, kind__in=kinds)
    later = waiting.exclude(queue__in=except_queues).aggregate(first=Min("due_at"))["first"]
    statement = _OLDEST_READY.format(kinds=_marks(kinds), queues=_marks(except_queues))
    with connection.cursor() as cursor:
        cursor.execute(statement, [*kinds, *except_queues])
        ready = moment_of(cursor.fetchone()[0])
    found = [moment for moment in (later, ready) if moment is not None and moment <= now]
    return min(found, default=None)


def _marks(values: Collection[str]) -> str:
    return ", ".join(["%s"] * len(values)) or "''"
