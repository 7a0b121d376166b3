"""`--check`: is this PC set up well? Changes nothing, here or on the server."""

import stat
import sys
from collections.abc import Callable
from pathlib import Path

from fleet.agent import facts, identity, shells, state
from fleet.agent.address import AddressError, read_address
from fleet.agent.transport import Transport, UnreachableError

HEALTH = "/healthz"
_OK = 200


class _BadError(Exception):
    """This part is not as it should be."""


def check(folder: Path, *, url: str | None, ca: Path | None) -> bool:
    """Print one line a part; whether all is well."""
    parts: tuple[tuple[str, Callable[[], str]], ...] = (
        ("python", lambda: f"{sys.version.split()[0]} at {sys.executable}"),
        ("folder", lambda: _folder(folder)),
        ("identity", lambda: _identity(folder)),
        ("server", lambda: _server(folder, url, ca)),
        ("zone", facts.local_zone),
        ("shells", lambda: ", ".join(shells.available())),
        ("machine", lambda: facts.fingerprint()[:16]),
    )
    found = [_print(name, ask) for name, ask in parts]
    return all(found)


def _print(name: str, ask: Callable[[], str]) -> bool:
    try:
        words, good = ask(), True
    except (_BadError, AddressError, UnreachableError, state.StateError, OSError) as error:
        words, good = str(error), False
    sys.stdout.write(f"{'ok ' if good else 'BAD'} {name}: {words}\n")
    return good


def _folder(folder: Path) -> str:
    if not folder.is_dir():
        raise _BadError(f"{folder} is not there; it is made at the first start")
    if sys.platform != "win32" and stat.S_IMODE(folder.stat().st_mode) & state.OTHERS:
        raise _BadError(f"{folder} is open to other users: chmod 700 {folder}")
    return str(folder)


def _identity(folder: Path) -> str:
    found = identity.load(folder)
    if found is None:
        raise _BadError("not enrolled; give --enrol TOKEN")
    return f"{found.name}, agent {found.agent_id} of {found.server}"


def _server(folder: Path, url: str | None, ca: Path | None) -> str:
    found = identity.load(folder) if url is None else None
    address = url or (found.server if found else None)
    if address is None:
        raise _BadError("no address; give --server URL")
    transport = Transport(read_address(address), ca=ca)
    try:
        reply = transport.request("GET", HEALTH, timeout_s=10.0)
    finally:
        transport.close()
    if reply.status != _OK:
        raise _BadError(f"{address} answers {reply.status} for {HEALTH}")
    return f"{address} answers"
