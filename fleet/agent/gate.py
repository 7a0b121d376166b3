"""What forbids a start now, known to all threads, and the bell that rings when it changes."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from fleet.agent import fields

_MOST_KILLS = 4096


@dataclass(frozen=True, slots=True)
class Freeze:
    """The freeze as the server last told it; from `starts_at` until `ends_at` where it says so."""

    frozen: bool = False
    reason: str = ""
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    unreadable: bool = False

    def covers(self, now: datetime) -> bool:
        """Whether the fleet is frozen at `now`, also long after the server was last heard."""
        if self.unreadable:
            return True
        if self.ends_at is not None and now >= self.ends_at:
            return False
        return self.frozen or (self.starts_at is not None and now >= self.starts_at)


# What cannot be read forbids everything: it may have been meant to.
UNREADABLE = Freeze(unreadable=True, reason="the server's word on the freeze cannot be read")


def read_freeze(source: fields.Object) -> Freeze:
    """The freeze of an answer; one that cannot be read is a freeze."""
    try:
        told = fields.child(source, "freeze")
        return Freeze(
            frozen=fields.flag(told, "frozen"),
            reason=fields.optional_text(told, "reason") or "",
            starts_at=fields.optional_moment(told, "from"),
            ends_at=fields.optional_moment(told, "until"),
            unreadable=fields.flag(told, "unreadable"),
        )
    except fields.FieldError:
        return UNREADABLE


class Gate:
    """Freeze, stop, kills and the server's trust, behind one condition.

    Whoever starts a script holds `closed()` from its last look at the gate until the process
    exists, so that a freeze that has been set is never followed by a start.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._freeze = UNREADABLE
        self._hold = ""
        self._stopping = self._aborting = False
        self._killed: OrderedDict[str, None] = OrderedDict()
        self._changes = 0

    def closed(self) -> threading.Condition:
        """The lock under which nothing changes (a context manager)."""
        return self._condition

    @property
    def freeze(self) -> Freeze:
        """The freeze as last told."""
        return self._freeze

    @property
    def is_stopping(self) -> bool:
        """Whether the agent is on its way out: nothing starts any more."""
        return self._stopping

    @property
    def is_aborting(self) -> bool:
        """Whether what still runs is to be ended."""
        return self._aborting

    def set_freeze(self, freeze: Freeze) -> None:
        """Take the server's word on the freeze."""
        with self._condition:
            self._freeze = freeze
            self._changed()

    def hold(self, reason: str) -> None:
        """Take no work for `reason`; an empty one lifts it."""
        with self._condition:
            self._hold = reason
            self._changed()

    def stop(self) -> None:
        """Start nothing any more."""
        with self._condition:
            self._stopping = True
            self._changed()

    def abort(self) -> None:
        """End what still runs."""
        with self._condition:
            self._stopping = self._aborting = True
            self._changed()

    def kill(self, commands: Iterable[str]) -> None:
        """Latch the kill of commands, whatever they are doing, even before they have come."""
        with self._condition:
            for command in commands:
                self._killed[command] = None
            while len(self._killed) > _MOST_KILLS:
                self._killed.popitem(last=False)
            self._changed()

    def is_killed(self, command: str) -> bool:
        """Whether the server asked to kill a command."""
        with self._condition:
            return command in self._killed

    def forbids(self, now: datetime | None, *, override_freeze: bool) -> str | None:
        """Why nothing may start at the server's time `now` (None: not known); None = it may."""
        with self._condition:
            if self._stopping:
                return "the agent is stopping"
            if self._hold:
                return self._hold
            if now is None:
                return "the server's time is not known"
            if self._freeze.covers(now) and not override_freeze:
                return f"frozen: {self._freeze.reason}" if self._freeze.reason else "frozen"
            return None

    def ring(self) -> None:
        """Wake every thread that waits: something has happened."""
        with self._condition:
            self._changed()

    @property
    def changes(self) -> int:
        """How often the bell has rung."""
        return self._changes

    def wait_beyond(self, changes: int, timeout_s: float) -> None:
        """Wait until the bell has rung more often than `changes`, at most `timeout_s`."""
        self.wait_for(lambda: self._changes != changes, timeout_s)

    def wait_for(self, predicate: Callable[[], bool], timeout_s: float | None) -> bool:
        """Wait until `predicate` holds or the time is up; what it says then."""
        with self._condition:
            return self._condition.wait_for(predicate, timeout_s)

    def _changed(self) -> None:
        self._changes += 1
        self._condition.notify_all()
