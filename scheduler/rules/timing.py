"""When a task is due: the asked time, its recurrence, and the dependencies it waits for."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from scheduler.rules.cron import CronError, parse
from scheduler.rules.zones import ZoneError, zone

MINUTE = timedelta(minutes=1)
# The last instant that every database and every zone can hold.
LATEST = datetime(9990, 1, 1, tzinfo=UTC)


class UnusableCronError(ValueError):
    """A stored recurrence cannot be read: its cron, its day rule or its zone."""


@dataclass(frozen=True, slots=True)
class Recurrence:
    """When a recurring task is due, as stored: text, zone name and day rule."""

    cron: str
    tz: str = "UTC"
    day_rule: str = "or"

    def next_after(self, after: datetime) -> datetime | None:
        """Return the first occurrence strictly after `after` in UTC; None = never again.

        Raises UnusableCronError.
        """
        # Occurrences are on whole minutes, so every instant of a minute has the same answer.
        return _next_after(self, after.replace(second=0, microsecond=0))

    @property
    def usable(self) -> bool:
        """Whether the text, the zone and the day rule can be read."""
        try:
            _read(self)
        except UnusableCronError:
            return False
        return True

    def require_usable(self) -> None:
        """Raise UnusableCronError unless the text, the zone and the day rule can be read."""
        _read(self)


@lru_cache(maxsize=16384)
def _next_after(recurrence: Recurrence, minute: datetime) -> datetime | None:
    _read(recurrence)
    expression = parse(recurrence.cron, day_rule=recurrence.day_rule)
    return expression.next_after(minute, zone(recurrence.tz))


@lru_cache(maxsize=4096)
def _read(recurrence: Recurrence) -> None:
    try:
        parse(recurrence.cron, day_rule=recurrence.day_rule)
        zone(recurrence.tz)
    except (CronError, ZoneError) as error:
        raise UnusableCronError(str(error)) from error


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pending task stands in the queue.

    `due_at` is None while it waits for others; `not_before` is the time it may start at the
    earliest once it does not; `ready` says that a runner may take it now.
    """

    due_at: datetime | None
    not_before: datetime | None
    ready: bool


def place(wanted: datetime | None, *, waits_for: int, held: bool, now: datetime) -> Place:
    """Place a task that may start at `wanted` (None = now) and waits for `waits_for` others.

    Due when both hold. A `held` one (its hook has not run yet) has a due time but is not ready.
    """
    if waits_for:
        return Place(due_at=None, not_before=wanted, ready=False)
    due_at = wanted if wanted is not None else now
    return Place(due_at=due_at, not_before=wanted, ready=due_at <= now and not held)


def require_moment(value: object, name: str) -> None:
    """Raise ValueError unless `value` is None or an aware datetime that can be stored."""
    if value is None:
        return
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise ValueError(f"{name} is an aware datetime, not {value!r:.60}")
    if value > LATEST:
        raise ValueError(f"{name} is after the year 9990")
