"""From one dispatch to its commands: waves with their times, and each machine's own start."""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from fleet.rules.deadlines import deadline_of
from fleet.rules.targets import Rollout
from fleet.rules.windows import Active, Hours

# Multiplicative hashing by the golden ratio: neighbours in number are far apart in time. The
# database draws with the same integers, so none of the products may exceed 63 bits.
GOLDEN = 2_654_435_761
AGENT_RANGE = 2**31
DRAW_RANGE = 2**32
MILLISECOND = timedelta(milliseconds=1)


def seed_of(name: str) -> int:
    """The number that makes the draws of one schedule (or job) differ from another's."""
    return zlib.crc32(name.encode())


def drawn_delay(agent: int, *, seed: int, span: timedelta) -> timedelta:
    """The agent's own share of the jitter, in [0, span): the same at every dispatch."""
    drawn = (agent % AGENT_RANGE * GOLDEN + seed) % DRAW_RANGE
    return drawn * (span // MILLISECOND) // DRAW_RANGE * MILLISECOND


@dataclass(frozen=True, slots=True)
class Opening:
    """When a dispatch or a wave goes out, and when the time that is open then ends."""

    due_at: datetime
    closes_at: datetime | None = None

    @property
    def is_possible(self) -> bool:
        """Whether there is any moment at which something may start."""
        return self.closes_at is None or self.closes_at > self.due_at


@dataclass(frozen=True, slots=True)
class Timetable:
    """The opening hours that bind a schedule; without arguments everything is open."""

    hours: Hours = field(default_factory=Hours)
    active: Active = field(default_factory=Active)
    tz: ZoneInfo = field(default_factory=lambda: ZoneInfo("UTC"))

    def opening_at(self, due_at: datetime) -> Opening:
        """The opening for something due at `due_at`: now, or when the hours open next."""
        opens = self.hours.opens_at(due_at, self.tz)
        if opens is None:
            return Opening(due_at, closes_at=due_at)
        ends = [self.hours.closes_at(opens, self.tz), self.active.ends_at]
        return Opening(opens, min((end for end in ends if end), default=None))


@dataclass(frozen=True, slots=True)
class Terms:
    """What the commands of one dispatch have in common."""

    jitter: timedelta
    wait: timedelta
    seed: int

    def span(self, opening: Opening) -> timedelta:
        """The time over which starts are spread: never beyond the end of the open time."""
        if opening.closes_at is None:
            return self.jitter
        return max(min(self.jitter, opening.closes_at - opening.due_at), timedelta(0))


@dataclass(frozen=True, slots=True)
class PlannedCommand:
    """One agent's share: not before `start_after`, not after `deadline_at`."""

    agent: int
    start_after: datetime
    deadline_at: datetime


def plan_commands(
    agents: Sequence[int], *, terms: Terms, opening: Opening
) -> Iterator[PlannedCommand]:
    """The commands of one wave, in the order of `agents`.

    A deadline counts from the agent's own start, so that a late draw is not born expired.
    """
    span = terms.span(opening)
    for agent in agents:
        start = opening.due_at + drawn_delay(agent, seed=terms.seed, span=span)
        deadline = deadline_of(start, wait=terms.wait, closes_at=opening.closes_at)
        yield PlannedCommand(agent, start, deadline)


def latest_deadline(terms: Terms, opening: Opening) -> datetime:
    """By when every command of a wave has started or expired."""
    last_start = opening.due_at + terms.span(opening)
    return deadline_of(last_start, wait=terms.wait, closes_at=opening.closes_at)


@dataclass(frozen=True, slots=True)
class PlannedWave:
    """One wave of a rollout."""

    number: int
    group: str
    opening: Opening


def plan_waves(
    rollout: Rollout, *, start: datetime, timetable: Timetable
) -> tuple[PlannedWave, ...]:
    """When each wave goes out. Delays count from the start, not from the wave before.

    A wave whose time falls where the hours are closed waits until they open.
    """
    return tuple(
        PlannedWave(number, wave.group, timetable.opening_at(start + wave.delay))
        for number, wave in enumerate(rollout.waves)
    )
