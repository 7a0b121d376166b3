"""Registers kinds that leave a line in a file, and one that stays inside until it may end."""

import os
import threading
from pathlib import Path

from django.apps import AppConfig

from scheduler.registry import REGISTRY, Kind
from scheduler.rules.fire import Fire


class KindsConfig(AppConfig):
    """The application."""

    name = "tests.scheduler.beat.kinds"
    label = "kinds"

    def ready(self) -> None:
        """Register the kinds."""
        REGISTRY.add(Kind("note", note))
        REGISTRY.add(Kind("hold", hold))


def hold(fire: Fire) -> str:
    """Leave a line, and stay until there is a file `release`."""
    told = note(fire)
    never = threading.Event()
    while not (folder() / "release").exists():
        never.wait(0.05)
    return told


def folder() -> Path:
    """Return where the test reads."""
    return Path(os.environ["PROGRAM_FOLDER"])


def note(fire: Fire) -> str:
    """Leave a line in one write, so that processes do not mix theirs."""
    path = folder() / "notes"
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(handle, f"{fire.task_id}\n".encode())
    os.close(handle)
    return str(os.getpid())
