"""What the freeze page shows: the state, and what the freeze holds or would hold."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from fleet.flow.freeze import known_row
from fleet.models import Command, Freeze, Schedule, Shape
from fleet.rules.command_states import WAITING
from fleet.rules.freeze import FreezeState

MOST_CALENDARS = 20
MOST_COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class Held:
    """What a freeze from one moment to another keeps from starting."""

    starts_at: datetime
    ends_at: datetime | None
    # Schedules that look every minute, and those that fire by the clock within the freeze.
    reconcilers: int
    calendars: Sequence[Schedule]
    # Commands that are written and not handed out: they wait, and expire at their deadlines.
    waiting: int
    expiring: int
    overridden: int

    @property
    def counted_all(self) -> bool:
        """Whether the count of waiting commands is exact."""
        return self.waiting < MOST_COUNTED


@dataclass(frozen=True, slots=True)
class FreezePage:
    """The state of the freeze, the row behind it (None if it is missing), and what is held."""

    state: FreezeState
    row: Freeze | None
    held: Held

    @property
    def word(self) -> str:
        """One word for the heading."""
        if self.state.unreadable is not None:
            return "unreadable"
        if self.state.frozen:
            return "frozen"
        return "ahead" if self.state.starts_at else "live"


def freeze_page(state: FreezeState, *, now: datetime) -> FreezePage:
    """Read the page for a state that was read at `now`."""
    starts_at = state.starts_at or now
    return FreezePage(state=state, row=known_row(), held=held(starts_at, state.until))


def held(starts_at: datetime, ends_at: datetime | None) -> Held:
    """What a freeze from `starts_at` to `ends_at` (None = open) keeps from starting."""
    enabled = Schedule.objects.filter(enabled=True)
    calendars = enabled.filter(shape=Shape.CALENDAR, next_fire_at__gte=starts_at)
    waiting = Command.objects.filter(state__in=[state.value for state in WAITING]).order_by()
    expiring = waiting.filter(override_freeze=False)
    if ends_at is not None:
        calendars = calendars.filter(next_fire_at__lt=ends_at)
        expiring = expiring.filter(deadline_at__lt=ends_at)
    return Held(
        starts_at=starts_at,
        ends_at=ends_at,
        reconcilers=enabled.exclude(shape=Shape.CALENDAR).count(),
        calendars=list(calendars.select_related("job").order_by("next_fire_at")[:MOST_CALENDARS]),
        waiting=waiting.filter(override_freeze=False)[:MOST_COUNTED].count(),
        expiring=expiring[:MOST_COUNTED].count() if ends_at is not None else 0,
        overridden=waiting.filter(override_freeze=True)[:MOST_COUNTED].count(),
    )
