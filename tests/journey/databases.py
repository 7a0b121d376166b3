"""The databases of whole sites: made empty or copied, and dropped."""

import fcntl
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
from psycopg import sql

POSTGRES = "postgres://postgres@127.0.0.1:5432/postgres"


def _server() -> str:
    return os.environ.get("TEST_POSTGRES_URL", POSTGRES)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let one process of the run in at a time."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def make(folder: Path, name: str, *, like: str = "") -> str:
    """Return the address of a new database, which may be a copy of another one."""
    if os.environ.get("TEST_DATABASE") != "postgres":
        return f"sqlite:///{folder}/{name}.sqlite3"
    suffix = os.environ.get("TEST_DB_SUFFIX", "own")
    made = f"kanade_test_{suffix}_journey_{name}_{secrets.token_hex(4)}"
    with psycopg.connect(_server(), autocommit=True) as connection:
        statement = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(made))
        if like:
            statement += sql.SQL(" TEMPLATE {}").format(sql.Identifier(like.rsplit("/", 1)[1]))
        connection.execute(statement)
    return f"{_server().rsplit('/', 1)[0]}/{made}"


def copy(template: str, folder: Path) -> str:
    """Return the address of a copy of a database that nobody is connected to."""
    made = make(folder, "site", like=template)
    if template.startswith("sqlite"):
        source, target = (url.removeprefix("sqlite:///") for url in (template, made))
        with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
            old.backup(new)
    return made


def drop(url: str) -> None:
    """Drop a database of the server."""
    name = url.rsplit("/", 1)[1]
    with psycopg.connect(_server(), autocommit=True) as connection:
        connection.execute(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
        )
