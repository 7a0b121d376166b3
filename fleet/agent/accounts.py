"""As whom a script runs: the agent's own account, or the user at the PC."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

if sys.platform != "win32":
    import pwd

SEAT = Path("/run/systemd/seats/seat0")
CONSOLE = Path("/dev/console")


class NoAccountError(Exception):
    """There is nobody as whom the script could run; the message says why."""


@dataclass(frozen=True, slots=True)
class Account:
    """A user of this PC."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str


def account_for(run_as: str, *, seat: Path = SEAT) -> Account | None:
    """The account of `run_as`, None for the agent's own; NoAccountError says why there is none."""
    if run_as == "system":
        return None
    if run_as != "user":
        raise NoAccountError(f"run_as {run_as!r} is not supported by this agent")
    if sys.platform == "win32":
        raise NoAccountError("run_as user is not supported on Windows")
    uid = _active_uid(seat)
    if uid is None:
        raise NoAccountError("run_as user: nobody is logged in at this PC")
    if uid == os.geteuid():
        return None
    if os.geteuid() != 0:
        raise NoAccountError("run_as user: the agent must run as root to become another user")
    return _account(uid)


def _active_uid(seat: Path) -> int | None:
    """Whose session is in front of the PC: systemd's seat, on macOS the console's owner."""
    if sys.platform == "darwin":
        return CONSOLE.stat().st_uid or None
    try:
        lines = seat.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    for line in lines:
        key, _, value = line.partition("=")
        if key == "ACTIVE_UID" and value.isdigit():
            return int(value)
    return None


def _account(uid: int) -> Account:
    try:
        found = pwd.getpwuid(uid)
    except KeyError as error:
        raise NoAccountError(f"run_as user: there is no account with the id {uid}") from error
    groups = tuple(os.getgrouplist(found.pw_name, found.pw_gid))
    return Account(found.pw_name, uid, found.pw_gid, groups, found.pw_dir)
