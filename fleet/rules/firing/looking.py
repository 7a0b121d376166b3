"""When a schedule is worth looking at again, beyond the moment at which an agent becomes due."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from fleet.rules.firing.decision import Decision, Dispatch, Skip
from fleet.rules.firing.facts import Snapshot
from fleet.rules.firing.reasons import ORDER, Reason
from fleet.rules.when import PerPc, PerTarget

MINUTE = timedelta(minutes=1)
# What has no time of its own is told to us; looking now and then finds what was not told.
NOW_AND_THEN = timedelta(minutes=5)
# Counting a large target costs something: it is looked at a minute later for so many agents.
AGENTS_PER_MINUTE = 10_000
_UNTIL_EDITED = frozenset({Reason.DISABLED, Reason.RUNS_ON_AGENT})
_CHANGES_BY_ITSELF = frozenset({Reason.DISPATCHED, Reason.IN_FLIGHT})


@dataclass(frozen=True, slots=True)
class Look:
    """`at` None = nothing to wait for. While `held`, agents that become due change nothing."""

    at: datetime | None
    held: bool = False


def next_look(facts: Snapshot, decision: Decision) -> Look:
    """When to evaluate a schedule again that was just decided about."""
    now = facts.now
    match decision:
        case Dispatch():
            return Look(_sooner(now + MINUTE, _boundary(facts)))
        case Skip(reason=reason) if reason in _UNTIL_EDITED:
            return Look(None, held=True)
        case Skip(reason=reason, opens_at=opens_at) if ORDER[reason] < ORDER[Reason.NOBODY_ALIVE]:
            return Look(opens_at or now + NOW_AND_THEN, held=True)
        case Skip(reason=reason, opens_at=opens_at):
            return Look(_sooner(_of_agents(reason, opens_at, facts), _boundary(facts)))


def _of_agents(reason: Reason, opens_at: datetime | None, facts: Snapshot) -> datetime | None:
    """When the agents' part may change without one of them becoming due."""
    if reason in _CHANGES_BY_ITSELF:
        return facts.now + MINUTE * (1 + (facts.roster or 0) // AGENTS_PER_MINUTE)
    if isinstance(facts.when, PerPc):
        return None
    # The agents of a target have no due times of their own; calendars have the next one.
    if isinstance(facts.when, PerTarget) and reason is not Reason.ALL_DONE:
        return opens_at or facts.now + MINUTE
    return opens_at


def _boundary(facts: Snapshot) -> datetime | None:
    """When the open hours or the active period end."""
    timetable, now = facts.timetable, facts.now
    closes = timetable.hours.closes_at(now, timetable.tz)
    ends = timetable.active.ends_at
    return _sooner(closes, ends if ends is not None and ends > now else None)


def _sooner(one: datetime | None, other: datetime | None) -> datetime | None:
    return min((at for at in (one, other) if at is not None), default=None)
