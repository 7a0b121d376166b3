"""The server's time, as far as this PC knows it.

The PC's own clock decides nothing: it may be wrong, and it may be set while the agent runs. The
server's time is learned with each exchange and carried on by a clock that nobody can set.
"""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta


class TimeUnknownError(Exception):
    """The agent has not heard the time from its server yet."""


def steady_seconds() -> float:
    """Seconds of a clock that only goes forward, and through the PC's sleep where it can."""
    boot_clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot_clock is None else time.clock_gettime(boot_clock)


class ServerClock:
    """The server's time between exchanges: what it said, plus the seconds since."""

    def __init__(self, *, steady: Callable[[], float] = steady_seconds) -> None:
        self._steady = steady
        self._lock = threading.Lock()
        self._anchor: tuple[datetime, float] | None = None

    def learn(self, server_time: datetime, *, asked_at: float, answered_at: float) -> None:
        """Take the server's time (aware) from an answer; both marks are of the steady clock.

        The server read its clock somewhere between the two: the middle halves the worst error.
        """
        middle = (asked_at + answered_at) / 2
        with self._lock:
            self._anchor = (server_time.astimezone(UTC), middle)

    def estimate(self, server_time: datetime) -> None:
        """Take a time that was not heard but reckoned, unless it has been heard."""
        with self._lock:
            if self._anchor is None:
                self._anchor = (server_time.astimezone(UTC), self._steady())

    def steady(self) -> float:
        """The reading of the steady clock, for durations."""
        return self._steady()

    def now(self) -> datetime | None:
        """The server's time (UTC), or None before the first exchange."""
        with self._lock:
            anchor = self._anchor
        if anchor is None:
            return None
        server_time, mark = anchor
        return server_time + timedelta(seconds=self._steady() - mark)

    def require_now(self) -> datetime:
        """The server's time (UTC); TimeUnknownError before the first exchange."""
        now = self.now()
        if now is None:
            raise TimeUnknownError("the server's time is not known yet")
        return now
