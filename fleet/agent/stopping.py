"""SIGTERM and Ctrl-C: handed to a thread, so that no lock is taken inside a signal handler."""

import signal
import threading
from collections.abc import Callable


class Stopper:
    """Hears the signals; what is to be stopped changes as the agent gets going."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._stop: Callable[[], None] = self._stopping.set
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._hear)

    @property
    def is_stopping(self) -> bool:
        """Whether a signal has come."""
        return self._stopping.is_set()

    def pass_on_to(self, stop: Callable[[], None]) -> None:
        """Call `stop` at each signal from now on, and at once if one has come already."""
        self._stop = stop
        if self._stopping.is_set():
            stop()

    def wait(self, seconds: float) -> None:
        """Wait, or stop waiting at a signal."""
        self._stopping.wait(seconds)

    def _hear(self, _number: int, _frame: object) -> None:
        threading.Thread(target=self._act, name="stop", daemon=True).start()

    def _act(self) -> None:
        self._stopping.set()
        self._stop()
