"""Read the freeze: what every gate asks before it lets anything through."""

import logging
from datetime import datetime

from django.db import DatabaseError, connection

from fleet.flow.manifests import local_zone
from fleet.models import Freeze
from fleet.rules.freeze import FreezeRecord, FreezeState, freeze_state, unreadable

logger = logging.getLogger(__name__)

# The number of the lock that hand-outs share and a change of the freeze takes alone.
_GATE = 4_611_686_018


def read_freeze(now: datetime, *, lock: bool = False) -> FreezeState:
    """The freeze at `now`, and frozen where the row cannot be understood.

    With `lock`, inside a transaction, nobody can set a freeze before that transaction ends.
    """
    if lock:
        _pass_the_gate(shared=True)
    records = [
        FreezeRecord(row.is_set, row.starts or None, row.ends or None, row.reason, row.tz)
        for row in Freeze.objects.stored()
    ]
    return freeze_state(records, now=now, local=local_zone())


def known_freeze(now: datetime) -> FreezeState:
    """The same for those who only show it: a database that refuses it is told as unreadable.

    At a gate that error is raised instead, and undoes whatever was to go through.
    """
    try:
        return read_freeze(now)
    except DatabaseError:
        if connection.in_atomic_block:
            # Nothing more can be read in this transaction.
            raise
        logger.exception("the freeze cannot be read", extra={"action": "freeze unreadable"})
        return unreadable("the database refuses it; its administrator can tell why")


def known_row() -> Freeze | None:
    """The row for those who show it; None where there is none or the database refuses it."""
    try:
        return Freeze.objects.order_by("pk").first()
    except DatabaseError:
        if connection.in_atomic_block:
            raise
        return None


def shut_the_gate() -> None:
    """Wait for those who read with `lock`; those who come later wait until this transaction ends.

    Whoever changes the freeze calls it first, inside a transaction.
    """
    _pass_the_gate(shared=False)


def _pass_the_gate(*, shared: bool) -> None:
    # Not a row lock: a stream of FOR SHARE readers overtakes the one writer that waits, and keeps
    # a freeze from being set for as long as it lasts. Here whoever comes first goes first. On
    # SQLite a transaction that may write has the database to itself.
    if connection.vendor == "postgresql":
        name = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {name}(%s)", [_GATE])
