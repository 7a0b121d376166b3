"""Hears the calls that commit in the database, once per process, for all who wait in it.

PostgreSQL sends notes. SQLite cannot: its calls are rows, and a counter in memory that changes with
every commit of another connection says when it is worth looking.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Mapping
from typing import Protocol

import psycopg

from fleet.flow.wakes import CHANNEL, called_by

logger = logging.getLogger(__name__)

LOOK_EVERY = 0.2
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
# What libpq takes from the settings of the database; the rest is Django's own.
LIBPQ = ("dbname", "user", "password", "host", "port", "sslmode", "sslrootcert", "passfile")

# The keys of the agents that are called, or None for all of them.
Called = Callable[[list[int] | None], None]


class Ears(Protocol):
    """A way to hear calls.

    Whoever begins to listen has missed what was called before, and so begins by calling everybody.
    """

    async def listen(self, called: Called) -> None:
        """Report calls until cancelled; raise psycopg.Error, sqlite3.Error or OSError."""


class PostgresEars:
    """One connection of its own that sits in LISTEN."""

    def __init__(self, parameters: Mapping[str, object]) -> None:
        self._parameters = {
            name: str(parameters[name]) for name in LIBPQ if parameters.get(name) is not None
        }

    async def listen(self, called: Called) -> None:
        """Report calls until cancelled or the connection breaks."""
        connection = await psycopg.AsyncConnection.connect(
            psycopg.conninfo.make_conninfo("", **self._parameters),
            autocommit=True,
            application_name="kanade waiting",
            keepalives_idle=30,
        )
        async with connection:
            await connection.execute(f"LISTEN {CHANNEL}")
            called(None)
            async for note in connection.notifies():
                called(called_by(note.payload))


class SQLiteEars:
    """A look at the table of calls, several times a second, and only after somebody wrote."""

    def __init__(self, path: str, *, look_every: float = LOOK_EVERY) -> None:
        self._path = path
        self._look_every = look_every

    async def listen(self, called: Called) -> None:
        """Report calls until cancelled or the file cannot be read."""
        connection = sqlite3.connect(self._path, isolation_level=None)
        try:
            connection.execute("PRAGMA query_only = ON")
            version, last = _version(connection), _newest(connection)
            called(None)
            while True:
                await asyncio.sleep(self._look_every)
                before, version = version, _version(connection)
                rows = _calls_after(connection, last) if version != before else []
                for row_id, note in rows:
                    last = row_id
                    called(called_by(note))
        finally:
            connection.close()


async def keep_listening(ears: Ears, called: Called, *, first_pause: float = FIRST_PAUSE) -> None:
    """Listen until cancelled, again and again where the connection breaks."""
    pause = first_pause
    while True:
        started = asyncio.get_running_loop().time()
        try:
            await ears.listen(called)
        except (psycopg.Error, sqlite3.Error, OSError) as error:
            logger.warning("cannot hear calls to agents", extra={"error": str(error)})
        if asyncio.get_running_loop().time() - started > LONGEST_PAUSE:
            pause = first_pause
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA data_version").fetchone()[0])


def _newest(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT coalesce(max(id), 0) FROM fleet_wake").fetchone()[0])


def _calls_after(connection: sqlite3.Connection, last: int) -> list[tuple[int, str]]:
    rows = connection.execute(
        "SELECT id, agents FROM fleet_wake WHERE id > ? ORDER BY id", [last]
    ).fetchall()
    return [(int(row[0]), str(row[1])) for row in rows]
