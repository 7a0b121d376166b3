"""The agent's folder: private files, replaced whole, used by one agent at a time.

A credential that others can read is not a credential, so a folder or file with wider rights is
refused rather than repaired: somebody may have read it already. Windows has no such bits; there
the folder's access list is the installer's business.
"""

import json
import os
import stat
import sys
from pathlib import Path
from typing import BinaryIO

from scheduler.rules import strict_json

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

OTHERS = stat.S_IRWXG | stat.S_IRWXO
_MAX_FILE_BYTES = 8 * 1024 * 1024


class StateError(Exception):
    """The folder or a file in it cannot be used; the message says what to do."""


def open_folder(path: Path) -> Path:
    """Return the folder, made with 0700 if it is missing; StateError when others may enter."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StateError(f"cannot make the folder {path}: {error.strerror}") from error
    _refuse_open_to_others(path, path.stat(), fix=f"chmod 700 {path}")
    return path


def write_private(path: Path, data: bytes) -> None:
    """Replace the file at once and durably: a reader sees the old bytes or the new ones.

    Raises OSError when the disk refuses; then the old file is untouched.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
    with open(os.open(temporary, flags, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_folder(path.parent)


def read_private(path: Path, *, most: int = _MAX_FILE_BYTES) -> bytes | None:
    """Return the bytes, None when there is no such file.

    StateError when others may read it, or when it has more than `most` bytes.
    """
    try:
        with path.open("rb") as file:
            _refuse_open_to_others(path, os.fstat(file.fileno()), fix=f"chmod 600 {path}")
            data = file.read(most + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateError(f"cannot read {path}: {error.strerror}") from error
    if len(data) > most:
        raise StateError(f"{path} is damaged: it has more than {most} bytes")
    return data


def write_json(path: Path, value: object) -> None:
    """Store a JSON value like `write_private`."""
    write_private(path, json.dumps(value, indent=1).encode())


def read_json(path: Path) -> dict[str, object] | None:
    """Return the stored object, None when there is none; StateError when it is damaged."""
    data = read_private(path)
    if data is None:
        return None
    try:
        value = strict_json.loads(data, max_bytes=_MAX_FILE_BYTES, max_nodes=200_000)
    except strict_json.StrictJSONError as error:
        raise StateError(f"{path} is damaged: {error}") from error
    if not isinstance(value, dict):
        raise StateError(f"{path} is damaged: it is no JSON object")
    return value


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable, where the system can."""
    if sys.platform == "win32":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def lock_folder(path: Path) -> BinaryIO:
    """Return the held lock of the folder; closing it, or dying, frees it.

    StateError when another agent works in the folder: two would start the same command twice.
    """
    file = open(os.open(path / "lock", os.O_RDWR | os.O_CREAT, 0o600), "r+b")  # noqa: SIM115  # held
    try:
        _lock(file)
    except OSError as error:
        file.close()
        raise StateError(f"another agent is already running in {path}") from error
    return file


def _lock(file: BinaryIO) -> None:
    if sys.platform == "win32":
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _refuse_open_to_others(path: Path, facts: os.stat_result, *, fix: str) -> None:
    if sys.platform == "win32":
        return
    if facts.st_mode & OTHERS:
        raise StateError(f"{path} is open to other users; if nobody read it, run: {fix}")
    if facts.st_uid != os.geteuid():
        raise StateError(f"{path} belongs to another user; run the agent as its owner")
