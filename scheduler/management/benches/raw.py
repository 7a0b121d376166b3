"""The queue that a program would write by hand: one table, two statements a batch, no history."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

TABLE = "bench_raw"
_MAKE = f"""
CREATE TABLE {TABLE} (
    id {{key}}, kind text NOT NULL, input text, state smallint NOT NULL DEFAULT 0,
    priority smallint NOT NULL DEFAULT 0, due_at {{time}} NOT NULL
)
"""
_INDEX = f"CREATE INDEX {TABLE}_due ON {TABLE} (priority DESC, due_at, id) WHERE state = 0"
_TAKE = f"""
UPDATE {TABLE} SET state = 1 WHERE id IN (
    SELECT id FROM {TABLE} WHERE state = 0 AND due_at <= CURRENT_TIMESTAMP
    ORDER BY priority DESC, due_at, id LIMIT {{limit}} {{skip}}
) RETURNING id, kind, input
"""
_END = f"UPDATE {TABLE} SET state = 2 WHERE id IN ({{marks}})"


@contextmanager
def table() -> Iterator[None]:
    """Have the table while something is measured."""
    postgres = connection.vendor == "postgresql"
    with connection.cursor() as cursor:
        cursor.execute(
            _MAKE.format(
                key="bigserial PRIMARY KEY" if postgres else "INTEGER PRIMARY KEY",
                time="timestamptz" if postgres else "text",
            )
        )
        cursor.execute(_INDEX)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE {TABLE}")


def fill(count: int) -> None:
    """Put `count` due rows into the empty table."""
    postgres = connection.vendor == "postgresql"
    series = (
        f"generate_series(1, {count})"
        if postgres
        else f"(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})"
        " SELECT i FROM n)"
    )
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {TABLE}")
        cursor.execute(
            f"INSERT INTO {TABLE} (kind, due_at)"
            f" SELECT 'bench.noop', '2020-01-01 00:00:00' FROM {series} AS s"
        )


def drain(batch: int) -> int:
    """Take and end everything, `batch` rows at a time, two commits a batch; return how many."""
    connection.ensure_connection()
    raw: Any = connection.connection
    postgres = connection.vendor == "postgresql"
    take = _TAKE.format(limit=batch, skip="FOR UPDATE SKIP LOCKED" if postgres else "")
    mark = "%s" if postgres else "?"
    cursor, done = raw.cursor(), 0
    while ids := [row[0] for row in cursor.execute(take).fetchall()]:
        cursor.execute(_END.format(marks=", ".join([mark] * len(ids))), ids)
        done += len(ids)
    return done
