"""`--check`: is this PC set up well? Changes nothing, here or on the server."""

import os
import shutil
import stat
import sys
from collections.abc import Callable
from pathlib import Path

from fleet.agent import facts, identity, shells, state
from fleet.agent.address import AddressError
from fleet.agent.checkup_server import Asked, BadError, token_words

# Below that the journal and the outbox may not be writable tomorrow.
LEAST_FREE_MIB = 64
_MIB = 1024 * 1024

Part = tuple[str, Callable[[], str]]


def check(folder: Path, *, url: str | None, ca: Path | None, token: str | None = None) -> bool:
    """Print one line a part; whether all is well."""
    here: tuple[Part, ...] = (
        ("python", lambda: f"{sys.version.split()[0]} at {sys.executable}"),
        ("folder", lambda: _folder(folder)),
        ("disk", lambda: _disk(folder)),
        ("identity", lambda: _identity(folder, token)),
        ("zone", facts.local_zone),
        ("shells", lambda: ", ".join(shells.available())),
        ("machine", lambda: facts.fingerprint()[:16]),
    )
    found = [_print(name, ask) for name, ask in here]
    return all([*found, *_ask_server(folder, url, ca)])


def _ask_server(folder: Path, url: str | None, ca: Path | None) -> list[bool]:
    """Print the server's parts; those behind the first one only where it answers."""
    asked: list[Asked] = []

    def reach() -> str:
        known = _known(folder)
        address = url or (known.server if known else None)
        if address is None:
            raise BadError("no address; give --server URL")
        asked.append(Asked(address, ca))
        return asked[0].reach()

    found = [_print("server", reach)]
    if not asked:
        return found
    found.append(_print("clock", asked[0].clock))
    known = _known(folder)
    if known is not None:
        found.append(_print("credential", lambda: asked[0].credential(known)))
    return found


def _print(name: str, ask: Callable[[], str]) -> bool:
    try:
        words, good = ask(), True
    except (BadError, AddressError, state.StateError, OSError) as error:
        words, good = str(error), False
    sys.stdout.write(f"{'ok ' if good else 'BAD'} {name}: {words}\n")
    return good


def _folder(folder: Path) -> str:
    if not folder.is_dir():
        raise BadError(f"{folder} is not there; it is made at the first start")
    if sys.platform != "win32":
        found = folder.stat()
        if stat.S_IMODE(found.st_mode) & state.OTHERS:
            raise BadError(f"{folder} is open to other users: chmod 700 {folder}")
        if found.st_uid != os.geteuid():
            raise BadError(f"{folder} belongs to another user: run the agent as its owner")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise BadError(f"{folder} cannot be written to: is the disk mounted read-only?")
    return str(folder)


def _disk(folder: Path) -> str:
    place = folder if folder.is_dir() else Path(folder.anchor or ".")
    free = shutil.disk_usage(place).free // _MIB
    if free < LEAST_FREE_MIB:
        raise BadError(
            f"{free} MiB are free at {place}: make room. Without it no command is taken, for "
            "none starts that cannot be noted first"
        )
    return f"{free} MiB free"


def _identity(folder: Path, token: str | None) -> str:
    found = _known(folder)
    if found is not None:
        return f"{found.name}, agent {found.agent_id} of {found.server}"
    if token is not None:
        return f"not enrolled yet; the token {token_words(token)}"
    raise BadError("not enrolled; give --enrol TOKEN")


def _known(folder: Path) -> identity.Identity | None:
    return identity.load(folder) if folder.is_dir() else None
