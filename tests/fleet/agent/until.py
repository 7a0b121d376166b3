"""Waiting in tests: for what is to happen, never for a time."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(ask: Callable[[], T], *, within_s: float = 20.0, what: str = "it to happen") -> T:
    """Return the first true answer of `ask`; fail when none came in time."""
    last = time.monotonic() + within_s
    pause = threading.Event()
    while not (answer := ask()):
        if time.monotonic() > last:
            raise AssertionError(f"waited {within_s} s for {what}")
        pause.wait(0.01)
    return answer
