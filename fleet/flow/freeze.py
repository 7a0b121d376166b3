"""Read the freeze: what every gate asks before it lets anything through."""

from datetime import datetime

from django.db import connection

from fleet.flow.manifests import local_zone
from fleet.models import Freeze
from fleet.rules.freeze import FreezeRecord, FreezeState, freeze_state

# One row is right, more are a fault; nobody needs to read a third.
_ENOUGH = 2
# The number of the lock that hand-outs share and a change of the freeze takes alone.
_GATE = 4_611_686_018


def read_freeze(now: datetime, *, lock: bool = False) -> FreezeState:
    """The freeze at `now`, and frozen where the row cannot be understood.

    With `lock`, inside a transaction, nobody can set a freeze before that transaction ends.
    """
    if lock:
        _pass_the_gate(shared=True)
    rows = Freeze.objects.order_by("pk")[:_ENOUGH]
    records = [
        FreezeRecord(row.is_set, row.starts or None, row.ends or None, row.reason, row.tz)
        for row in rows
    ]
    return freeze_state(records, now=now, local=local_zone())


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
