"""A database of a test module's own, and children of this process that end as they are told.

Forked children commit for real, so that they may not share a database with other tests.
"""

import gc
import os
import signal
import sqlite3
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.db import connections


@contextmanager
def own_database(name: str) -> Iterator[None]:
    """Let this process work on a copy of the empty test database; remove it afterwards."""
    connection = connections["default"]
    settings = connection.settings_dict
    make, drop = _WAYS[connection.vendor]
    with _test_database():
        _disconnect()
        original = settings["NAME"]
        copy = f"{original}_{name}"
        make(original, copy)
        pooled = settings["OPTIONS"]
        settings["NAME"] = copy
        # A pool's connections and threads do not outlive a fork.
        settings["OPTIONS"] = {key: pooled[key] for key in pooled if key != "pool"}
        try:
            yield
        finally:
            connections.close_all()
            settings["NAME"], settings["OPTIONS"] = original, pooled
            drop(copy)


def _disconnect() -> None:
    """Leave no session on the database, so that it can be copied."""
    connections.close_all()
    if connections["default"].vendor == "postgresql":
        connections["default"].close_pool()  # type: ignore[attr-defined]  # of PostgreSQL alone


@contextmanager
def _test_database() -> Iterator[None]:
    """Make the test database where nobody has: in a run of such modules alone."""
    connection = connections["default"]
    before = connection.settings_dict["NAME"]
    creation: Any = connection.creation
    if str(before) == str(creation._get_test_db_name()):
        yield
        return
    connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    try:
        yield
    finally:
        connection.creation.destroy_test_db(before, verbosity=0)


def _copy_file(original: str, copy: str) -> None:
    source, target = sqlite3.connect(original), sqlite3.connect(copy)
    source.backup(target)
    target.execute("PRAGMA journal_mode=WAL")
    source.close()
    target.close()


def _remove_file(copy: str) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{copy}{suffix}").unlink(missing_ok=True)


def _maintain(statement: str) -> None:
    with connections["default"]._nodb_cursor() as cursor:
        cursor.execute(statement)


def _copy_template(original: str, copy: str) -> None:
    _maintain(f'DROP DATABASE IF EXISTS "{copy}" WITH (FORCE)')
    _maintain(f'CREATE DATABASE "{copy}" TEMPLATE "{original}"')


def _drop_template(copy: str) -> None:
    _maintain(f'DROP DATABASE IF EXISTS "{copy}" WITH (FORCE)')


_WAYS: dict[str, tuple[Callable[[str, str], None], Callable[[str], None]]] = {
    "sqlite": (_copy_file, _remove_file),
    "postgresql": (_copy_template, _drop_template),
}


# Seconds; children need a second or two.
LONGEST_S = 60


def forked(act: Callable[[], Any]) -> int:
    """Do the act in a child; return how that ended: 0, or minus the signal that killed it.

    A child that fails says why on standard error and ends with 1; one that goes on for ever is
    ended by an alarm.
    """
    connections.close_all()
    child = os.fork()
    if child == 0:
        code = 1
        signal.alarm(LONGEST_S)
        # It lives for a moment only, and a collection would copy every page of this process.
        gc.disable()
        try:
            act()
            code = 0
        except BaseException:  # noqa: BLE001  # whatever it is, this process is over
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def die() -> None:
    """End this process as a power cut does."""
    os.kill(os.getpid(), signal.SIGKILL)
