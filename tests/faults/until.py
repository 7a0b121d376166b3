"""Wait for what other threads and processes do, without a guess how long that takes."""

import threading
import time
from collections.abc import Callable

# Only ever reached by a test that fails.
PATIENCE = 60.0


def until(found: Callable[[], object], what: str, *, within_s: float = PATIENCE) -> None:
    """Return as soon as `found` says so."""
    pause = threading.Event()
    last = time.monotonic() + within_s
    while not found():
        assert time.monotonic() < last, what
        pause.wait(0.01)
