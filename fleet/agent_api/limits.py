"""How much one caller may ask in a minute: kept in memory, so that a flood writes nothing.

Each server process counts by itself.
"""

import threading
import time
from collections.abc import Callable

from rest_framework.exceptions import Throttled

UNITS_PER_MINUTE = 300
MINUTE = 60.0
# A large message counts as several: so many bytes are one unit.
UNIT_BYTES = 256 * 1024


class Allowance:
    """Units by caller in the current minute. Everything is forgotten when the next one begins."""

    def __init__(self, units: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._units = units
        self._clock = clock
        self._lock = threading.Lock()
        self._minute = -1
        self._spent: dict[object, int] = {}

    def spend(self, caller: object, size: int = 0) -> None:
        """Take a message of `size` bytes from the caller's allowance; raise Throttled.

        What is refused costs nothing, and the first message of a minute always fits.
        """
        units = 1 + size // UNIT_BYTES
        with self._lock:
            self._spent[caller] = self._fitting(caller, units) + units

    def require(self, caller: object) -> None:
        """Raise Throttled where the caller could not send one small message more."""
        with self._lock:
            self._fitting(caller, 1)

    def _fitting(self, caller: object, units: int) -> int:
        """Return what the caller has spent this minute; raise Throttled if `units` do not fit."""
        at = self._clock()
        minute = int(at // MINUTE)
        if minute != self._minute:
            self._minute, self._spent = minute, {}
        spent = self._spent.get(caller, 0)
        if spent and spent + units > self._units:
            raise Throttled(wait=(minute + 1) * MINUTE - at)
        return spent


AGENTS = Allowance(UNITS_PER_MINUTE)
# Of those who got in with no token: a whole site may enrol from behind one address.
ADDRESSES = Allowance(UNITS_PER_MINUTE)
# So many enrol at a time in one process: they wait for each other at their token, and a site whose
# PCs all enrol at once must not take every connection from those that work.
ENROLLING = threading.BoundedSemaphore(4)
