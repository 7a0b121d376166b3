"""Waking runners: an event inside this process, NOTIFY to the others on PostgreSQL."""

import threading
from datetime import datetime, timedelta

from django.db import connection, transaction

CHANNEL = "kanade_due"
# A runner looks by itself this often: what is due later than that need not wake anybody.
LONGEST_WAIT = timedelta(seconds=5)

# Set when work may be due; a runner of this process waits on it.
DUE = threading.Event()


def announce(due_at: datetime | None, *, now: datetime) -> None:
    """Tell runners, once the current transaction commits, that a task is due soon.

    Call it inside the transaction: a rolled-back request then wakes nobody.
    """
    if due_at is not None and due_at - now <= LONGEST_WAIT:
        announce_now()


def announce_now() -> None:
    """Tell runners, once the current transaction commits, that work may be due."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"NOTIFY {CHANNEL}")
    transaction.on_commit(DUE.set)
