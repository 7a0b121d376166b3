"""How much one caller may ask in a minute: kept in memory, so that a flood writes nothing.

Each server process counts by itself.
"""

import threading
from collections.abc import Callable
from typing import Any

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

UNITS_PER_MINUTE = 300
MINUTE = 60.0
# A large message counts as several: so many bytes are one unit.
UNIT_BYTES = 256 * 1024


class Allowance:
    """Units by caller in the current minute. Everything is forgotten when the next one begins."""

    def __init__(self, units: int, clock: Callable[[], float]) -> None:
        self._units = units
        self._clock = clock
        self._lock = threading.Lock()
        self._minute = -1
        self._spent: dict[object, int] = {}

    def spend(self, caller: object, units: int) -> float | None:
        """Take units from the caller's allowance; return None, or the seconds until it is new.

        What is refused costs nothing, and the first request of a minute always fits.
        """
        at = self._clock()
        minute = int(at // MINUTE)
        with self._lock:
            if minute != self._minute:
                self._minute, self._spent = minute, {}
            spent = self._spent.get(caller, 0)
            if spent and spent + units > self._units:
                return (minute + 1) * MINUTE - at
            self._spent[caller] = spent + units
            return None


def _seconds() -> float:
    return timezone.now().timestamp()


AGENTS = Allowance(UNITS_PER_MINUTE, _seconds)
ADDRESSES = Allowance(UNITS_PER_MINUTE, _seconds)


class AgentLimit(BaseThrottle):
    """Limits an agent, by what it sends."""

    _wait: float | None = None

    def allow_request(self, request: Request, view: Any) -> bool:
        """Answer whether the agent may still ask in this minute."""
        caller: Any = request.auth
        units = 1 + _length(request) // UNIT_BYTES
        self._wait = AGENTS.spend(caller.agent.uuid_text, units)
        return self._wait is None

    def wait(self) -> float | None:
        """Return the seconds until it may."""
        return self._wait


class AddressLimit(BaseThrottle):
    """Limits whoever is not known yet, by address."""

    _wait: float | None = None

    def allow_request(self, request: Request, view: Any) -> bool:
        """Answer whether the address may still ask in this minute."""
        self._wait = ADDRESSES.spend(self.get_ident(request), 1)
        return self._wait is None

    def wait(self) -> float | None:
        """Return the seconds until it may."""
        return self._wait


def _length(request: Request) -> int:
    text = request.META.get("CONTENT_LENGTH") or "0"
    return int(text) if text.isdigit() and len(text) < 12 else 0  # noqa: PLR2004  # a terabyte
