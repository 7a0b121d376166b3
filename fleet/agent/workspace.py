"""Where one attempt runs: a private folder with the script in it, and a clean environment."""

import os
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fleet.agent import accounts, shells
from fleet.agent.accounts import Account
from fleet.agent.commands import Command

FOLDER_PREFIX = "kanade-run-"
# The mark by which a process of this attempt is told from all others, wherever it has gone.
MARK = "KANADE_RUN"
_PARAM_PREFIX = "KANADE_P_"
_KEPT = (
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ",
    "SystemRoot", "SystemDrive", "windir", "ComSpec", "PATHEXT", "ProgramData", "ProgramFiles",
    "ProgramFiles(x86)", "ProgramW6432", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PUBLIC",
    "COMPUTERNAME", "USERNAME", "USERDOMAIN", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE",
)  # fmt: skip


class RefusedError(Exception):
    """This PC cannot run the script; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """Everything that the start of a process needs."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    cwd: Path
    account: Account | None
    mark: str
    code_page: str


@contextmanager
def workspace(command: Command, attempt: int) -> Iterator[Workspace]:
    """Make the folder, write the script, remove both afterwards.

    Raises RefusedError before anything is made, and OSError when the disk refuses.
    """
    script = command.script
    shell = _shell(script.shell)
    try:
        account = accounts.account_for(script.run_as)
        data = shell.encode(script.text)
    except (accounts.NoAccountError, shells.UnencodableError) as error:
        raise RefusedError(str(error)) from error
    cwd = _folder(script.cwd)
    folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX))
    try:
        path = folder / f"script{shell.suffix}"
        path.write_bytes(data)
        path.chmod(0o600)
        if account is not None:
            _give_away([folder, path], account)
        mark = secrets.token_hex(16)
        yield Workspace(
            argv=(*shell.argv, str(path)),
            environment=environment(command, attempt, folder, account) | {MARK: mark},
            cwd=cwd or folder,
            account=account,
            mark=mark,
            code_page=shell.code_page,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_leftovers(*, older_than_s: float = 86_400.0) -> None:
    """Remove the folders that agents of this account left behind when they died.

    Younger ones are left alone: a script may have outlived its agent and still be at work.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*"):
        try:
            facts = folder.lstat()
        except OSError:
            continue
        is_ours = stat.S_ISDIR(facts.st_mode) and facts.st_uid == _own_uid()
        if is_ours and time.time() - facts.st_mtime > older_than_s:
            shutil.rmtree(folder, ignore_errors=True)


def environment(
    command: Command, attempt: int, folder: Path, account: Account | None
) -> dict[str, str]:
    """What the script sees of the world: an allow-list, its own facts and its parameters."""
    found = {name: os.environ[name] for name in _KEPT if name in os.environ}
    found.setdefault("PATH", os.defpath)
    found |= dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))
    if account is not None:
        found |= {"HOME": account.home, "USER": account.name, "LOGNAME": account.name}
    found |= {
        "KANADE_COMMAND": command.id,
        "KANADE_JOB": command.job,
        "KANADE_VERSION": command.version,
        "KANADE_ATTEMPT": str(attempt),
    }
    # Values reach the script as variables and never become a part of its text.
    return found | {_PARAM_PREFIX + name: text for name, text in command.script.params.items()}


def _own_uid() -> int:
    # Windows has none and says 0 for every file's owner.
    return os.geteuid() if sys.platform != "win32" else 0


def _shell(name: str) -> shells.Shell:
    shell = shells.find(name)
    if shell is None:
        has = ", ".join(shells.available())
        raise RefusedError(f"this PC has no shell {name!r}; it has {has}")
    return shell


def _folder(cwd: str | None) -> Path | None:
    if cwd is None:
        return None
    path = Path(cwd)
    if not path.is_absolute() or not path.is_dir():
        raise RefusedError(f"the working folder {cwd!r} is not there")
    return path


def _give_away(paths: list[Path], account: Account) -> None:
    for path in paths:
        os.chown(path, account.uid, account.gid)
