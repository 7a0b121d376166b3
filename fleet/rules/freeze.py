"""Whether the fleet is frozen, from the facts of its one stored row.

Fail closed: no row, more than one, or one that cannot be read means frozen.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from fleet.rules.bounds import BoundError, parse_bound, zone_named
from scheduler.rules.zones import ZoneError


@dataclass(frozen=True, slots=True)
class FreezeRecord:
    """What is stored, unchecked: a row may hold anything after a bad restore."""

    is_set: object
    starts: object = None
    ends: object = None
    reason: object = ""
    tz: object = "local"


@dataclass(frozen=True, slots=True)
class FreezeState:
    """The answer for one moment."""

    frozen: bool
    reason: str = ""
    # When the freeze ends by itself; None = by a person's act alone.
    until: datetime | None = None
    # When a freeze that is set but not yet in force begins.
    starts_at: datetime | None = None
    unreadable: str | None = None

    @property
    def words(self) -> str:
        """One line for banners and reasons."""
        if self.unreadable is not None:
            return f"frozen: unreadable ({self.unreadable})"
        if not self.frozen:
            return "not frozen"
        return f"frozen: {self.reason}" if self.reason else "frozen"


NOT_FROZEN = FreezeState(frozen=False)


class _UnreadableError(Exception):
    """The record holds something that is no freeze."""


def freeze_state(records: Sequence[FreezeRecord], *, now: datetime, local: ZoneInfo) -> FreezeState:
    """The state at `now`, given every stored row; `local` is the zone that `tz: local` means.

    Never raises: what cannot be read is frozen, without an end, and says why.
    """
    if len(records) != 1:
        return unreadable("no freeze record" if not records else "several freeze records")
    try:
        return _state(records[0], now, local)
    except _UnreadableError as error:
        return unreadable(str(error))


def unreadable(why: str) -> FreezeState:
    """Frozen because nobody can tell."""
    return FreezeState(frozen=True, unreadable=why)


def _state(record: FreezeRecord, now: datetime, local: ZoneInfo) -> FreezeState:
    if not isinstance(record.is_set, bool):
        raise _UnreadableError("it is not clear whether it is set")
    if not record.is_set:
        return NOT_FROZEN
    tz = _zone(record.tz, local)
    starts, ends = _bound(record.starts, tz), _bound(record.ends, tz)
    if starts and ends and starts >= ends:
        raise _UnreadableError("it ends before it starts")
    reason = record.reason if isinstance(record.reason, str) else ""
    if starts and now < starts:
        return FreezeState(frozen=False, reason=reason, until=ends, starts_at=starts)
    if ends and ends <= now:
        return NOT_FROZEN
    return FreezeState(frozen=True, reason=reason, until=ends)


def _zone(name: object, local: ZoneInfo) -> ZoneInfo:
    if not isinstance(name, str):
        raise _UnreadableError("its zone is no text")
    try:
        return zone_named(name, local)
    except ZoneError as error:
        raise _UnreadableError(str(error)) from None


def _bound(text: object, tz: ZoneInfo) -> datetime | None:
    if text is None:
        return None
    if not isinstance(text, str):
        raise _UnreadableError("a bound is no text")
    try:
        return parse_bound(text, tz)
    except BoundError as error:
        raise _UnreadableError(str(error)) from None
