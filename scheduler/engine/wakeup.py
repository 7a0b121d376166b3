"""Waking runners: an event inside this process, NOTIFY to the others on PostgreSQL."""

import logging
import threading
from datetime import datetime, timedelta

import psycopg
from django.db import connection, transaction

logger = logging.getLogger(__name__)

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


class Listener:
    """Turns NOTIFY from other processes into DUE; on SQLite there is nothing to listen to."""

    def __init__(self) -> None:
        """Nothing is heard before `start`."""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="listener", daemon=True)

    def start(self) -> None:
        """Listen in a thread of its own, on a connection of its own."""
        if connection.vendor == "postgresql":
            self._thread.start()

    def stop(self) -> None:
        """End within a second."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(timeout=2)

    def _listen(self) -> None:
        while not self._stopped.is_set():
            try:
                self._hear()
            except psycopg.Error:
                # The runner looks by itself meanwhile.
                logger.warning("not listening", extra={"action": "listener lost"})
                self._stopped.wait(timeout=1)

    def _hear(self) -> None:
        # Not one of the pool's: it would go back there still listening.
        parameters = connection.get_connection_params()
        with psycopg.connect(**parameters, autocommit=True) as listening:
            listening.execute(f"LISTEN {CHANNEL}")
            # What was announced while nobody listened.
            DUE.set()
            while not self._stopped.is_set():
                for _ in listening.notifies(timeout=1, stop_after=1):
                    DUE.set()
