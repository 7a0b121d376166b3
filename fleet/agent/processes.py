"""A script's processes: started apart from the agent's, and ended with all their descendants."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from fleet.agent.workspace import MARK, Workspace

TERMINATION_GRACE_S = 2.0
# A process in the kernel's hands may not die at all; the agent does not wait for it for ever.
_MOST_S = 10.0
_ROUND_S = 0.02
_MOST_LOOKS = 100
_PROC = Path("/proc")
_IS_THERE = 0


class ProcessTree:
    """The script's process and what it starts."""

    def __init__(self, place: Workspace, *, on_exit: Callable[[], None]) -> None:
        """Start the script; `on_exit` is called from another thread when its process has ended.

        Raises OSError when the system cannot start it: then nothing has run.
        """
        self._mark = f"{MARK}={place.mark}".encode()
        self._on_exit = on_exit
        self.exited = threading.Event()
        # Known as soon as it has exited, where the system tells it without forgetting the process.
        self.has_failed = False
        self._begun = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="watch", daemon=True)
        try:
            # Before the process: without a thread to watch it, it must not run.
            self._watcher.start()
            self.process = _start(place)
        except RuntimeError as error:
            raise OSError(f"no thread to watch it: {error}") from error
        finally:
            self._begun.set()

    def exit_code(self) -> int | None:
        """The code of the ended process, negative for the signal that ended it; None while it runs.

        Reaps the process: from here on its number may mean another one.
        """
        return self.process.wait() if self.exited.is_set() else None

    def end(self, *, grace_s: float = TERMINATION_GRACE_S) -> None:
        """End the process and all its descendants: asked first, then killed."""
        if sys.platform == "win32":
            _end_on_windows(self.process)
        else:
            gone = self._signal_until_gone(signal.SIGTERM, grace_s, again=False)
            if not gone:
                self._hold_still()
                # In rounds: what is being forked while signals go out is met by the next one.
                self._signal_until_gone(signal.SIGKILL, _MOST_S, again=True)
        self.exited.wait(_MOST_S)

    def _watch(self) -> None:
        self._begun.wait()
        if not hasattr(self, "process"):
            return
        if hasattr(os, "waitid"):
            # Left as a zombie until it is asked for: its number cannot mean another process.
            ended = os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)
            self.has_failed = ended is not None and ended.si_status != 0
        else:
            self.process.wait()
        self.exited.set()
        self._on_exit()

    def _hold_still(self) -> None:
        """Stop every process of the tree: one that forks is faster than one kill after another."""
        stopped = set[int]()
        for _ in range(_MOST_LOOKS):
            new = self._members() - stopped
            if not new:
                return
            for pid in new:
                _send(pid, signal.SIGSTOP)
            stopped |= new

    def _signal_until_gone(self, number: int, seconds: float, *, again: bool) -> bool:
        """Signal each process of the tree, also those that appear meanwhile; whether all ended."""
        pause, signalled = threading.Event(), set[int]()
        for _ in range(max(1, int(seconds / _ROUND_S))):
            members = self._members()
            if not members:
                return True
            for pid in members if again else members - signalled:
                _send(pid, number)
            signalled |= members
            pause.wait(_ROUND_S)
        return False

    def _members(self) -> set[int]:
        if sys.platform != "linux":
            group = -self.process.pid
            return {group} if _send(group, _IS_THERE) else set()
        return linux_members(self.process.pid, self._mark)


def _send(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
    except OSError:
        return False
    return True


def linux_members(root: int, mark: bytes) -> set[int]:
    """The living processes of a tree: descendants, the session and group, and who bears the mark.

    A process that left the session and whose parent died is no descendant any more; it still
    carries the mark in the environment it inherited.
    """
    table = {pid: facts for pid in _pids() if (facts := _facts(pid)) is not None}
    found = {
        pid
        for pid, (_, group, session) in table.items()
        if pid == root or root in {group, session} or _bears(pid, mark)
    }
    while more := {p for p, (parent, _, _) in table.items() if parent in found and p not in found}:
        found |= more
    return found - {os.getpid()}


def _pids() -> list[int]:
    return [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()]


def _facts(pid: int) -> tuple[int, int, int] | None:
    """Parent, group and session; None when the process has ended."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name may hold blanks and brackets; what follows the last one is numbers.
    state, parent, group, session = text.rpartition(")")[2].split()[:4]
    return None if state in "ZX" else (int(parent), int(group), int(session))


def _bears(pid: int, mark: bytes) -> bool:
    try:
        return mark in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _start(place: Workspace) -> subprocess.Popen[bytes]:
    account = place.account
    return subprocess.Popen(
        place.argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        cwd=place.cwd,
        env=dict(place.environment),
        close_fds=True,
        start_new_session=True,
        creationflags=_windows_flags(),
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=account.groups if account else None,
    )


def _windows_flags() -> int:
    if sys.platform == "win32":
        return subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
    return 0


def _end_on_windows(process: subprocess.Popen[bytes]) -> None:
    subprocess.run(
        ["taskkill", "/PID", str(process.pid), "/T", "/F"],  # noqa: S607  # a part of Windows
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
