"""Read the freeze: what every gate asks before it lets anything through."""

from datetime import datetime

from django.db import connection

from fleet.flow.manifests import local_zone
from fleet.models import Freeze
from fleet.rules.freeze import FreezeRecord, FreezeState, freeze_state

# One row is right, more are a fault; nobody needs to read a third.
_ENOUGH = 2


def read_freeze(now: datetime, *, lock: bool = False) -> FreezeState:
    """The freeze at `now`: one query, and frozen where the row cannot be understood.

    With `lock`, inside a transaction, nobody can set a freeze before that transaction ends
    (shared on PostgreSQL; on SQLite a writer holds the database anyway).
    """
    rows = list(_rows(lock=lock))
    records = [
        FreezeRecord(row.is_set, row.starts or None, row.ends or None, row.reason, row.tz)
        for row in rows
    ]
    return freeze_state(records, now=now, local=local_zone())


def _rows(*, lock: bool) -> "list[Freeze]":
    query = Freeze.objects.order_by("pk")[:_ENOUGH]
    if not lock or connection.vendor != "postgresql":
        return list(query)
    # The ORM knows FOR UPDATE alone, under which exchanges would wait for each other.
    return list(
        Freeze.objects.raw("SELECT * FROM fleet_freeze ORDER BY id LIMIT %s FOR SHARE", [_ENOUGH])
    )
