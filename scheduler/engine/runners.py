"""A runner process: its row, its beats, and whether one of this machine is still there."""

import os
import socket
from collections.abc import Collection
from pathlib import Path

from django.db.models import F
from django.db.models.functions import Now

from scheduler.models import Runner, Task

PROC = Path("/proc")
# In /proc/PID/stat, counted after the command's closing parenthesis.
STATE_FIELD, START_FIELD = 0, 19
DEAD_STATES = {"Z", "X"}


def sign_on(name: str, *, workers: int, queues: Collection[str] | None) -> Runner:
    """Write the row of this process and return it."""
    pid = os.getpid()
    return Runner.objects.create(
        name=name,
        host=socket.gethostname(),
        boot_id=boot_id(),
        pid_namespace=pid_namespace(),
        pid=pid,
        start_tick=start_tick(pid) or 0,
        workers=workers,
        queues=sorted(queues) if queues is not None else None,
    )


def sign_off(runner_id: int) -> None:
    """Say that this process takes nothing more and holds nothing."""
    Runner.objects.filter(pk=runner_id).update(stopped_at=Now(), last_tick_at=Now())


def beat(runner_id: int, *, holds_any: bool) -> None:
    """Keep all leases of a runner, in one statement, and say that it is alive."""
    if holds_any:
        Task.objects.held_by(runner_id).update(beat=F("beat") + 1, beat_at=Now())
    Runner.objects.filter(pk=runner_id).update(last_tick_at=Now())


def is_gone(runner: Runner) -> bool:
    """Whether the process is known to be over: it was one of this machine, and is not there."""
    if not runner.boot_id or runner.boot_id != boot_id():
        return False
    if runner.pid_namespace != pid_namespace():
        return False
    return start_tick(runner.pid) != runner.start_tick


def boot_id() -> str:
    """Return what names this start of the machine; empty where the system does not say."""
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def pid_namespace() -> str:
    """Return what names the process table that this process is in."""
    try:
        return str((PROC / "self/ns/pid").readlink())
    except OSError:
        return ""


def start_tick(pid: int) -> int | None:
    """Return when a process began, in ticks since the machine did; None if it is over."""
    try:
        stat = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The command may hold spaces and parentheses itself.
    fields = stat.rpartition(")")[2].split()
    return None if fields[STATE_FIELD] in DEAD_STATES else int(fields[START_FIELD])
