"""Registers a kind that leaves a line in a file."""

import os
from pathlib import Path

from django.apps import AppConfig

from scheduler.registry import REGISTRY, Kind
from scheduler.rules.fire import Fire


class KindsConfig(AppConfig):
    """The application."""

    name = "tests.scheduler.beat.kinds"
    label = "kinds"

    def ready(self) -> None:
        """Register the kind."""
        REGISTRY.add(Kind("note", note))


def note(fire: Fire) -> str:
    """Leave a line in one write, so that processes do not mix theirs."""
    path = Path(os.environ["PROGRAM_FOLDER"]) / "notes"
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(handle, f"{fire.task_id}\n".encode())
    os.close(handle)
    return str(os.getpid())
