"""Threads that are stopped at a place until somebody lets them go on."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from django.db import connections

# Only ever reached by a test that fails.
PATIENCE = 60.0


@dataclass
class Halt:
    """Where somebody is stopped. Call it there."""

    there: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)

    def __call__(self) -> None:
        """Stop until `go`."""
        self.there.set()
        assert self.go.wait(PATIENCE), "nobody said that it goes on"

    def wait(self) -> None:
        """Return when somebody is there."""
        assert self.there.wait(PATIENCE), "nobody came to the place"


def in_a_thread(act: Callable[[], object]) -> threading.Thread:
    """Begin the act on a connection of its own."""

    def run() -> None:
        try:
            act()
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    return thread
