"""How far each agent comes: the gates that ask about agents, and the slots."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from fleet.rules.cooldown import armed_from
from fleet.rules.failing import backs_off_until
from fleet.rules.firing.facts import Candidate, Snapshot
from fleet.rules.firing.reasons import ORDER, Gate, Reason
from fleet.rules.slots import free_slots
from fleet.rules.suppression import muted_until
from fleet.rules.when import Calendar, PerTarget

AGENT_GATES = (
    Reason.NOBODY_ALIVE,
    Reason.ALL_DONE,
    Reason.BACKING_OFF,
    Reason.IN_FLIGHT,
    Reason.MUTED,
)


@dataclass(frozen=True, slots=True)
class Standing:
    """At which gate an agent stops (`dispatched` = at none), and until when."""

    reason: Reason
    until: datetime | None = None


_WANTED = Standing(Reason.DISPATCHED)


def standing(agent: Candidate, facts: Snapshot) -> Standing:
    """How far one agent of a `per_pc` schedule comes."""
    now = facts.now
    if not agent.is_alive:
        return Standing(Reason.NOBODY_ALIVE)
    version = facts.job.version if facts.job else ""
    wanted_from = armed_from(facts.when, agent.success, version=version, now=now)
    if wanted_from is None or wanted_from > now:
        return Standing(Reason.ALL_DONE, wanted_from)
    pause_ends = backs_off_until(agent.failures, agent.last_failed_at, window=facts.window)
    if facts.backs_off and pause_ends is not None and now < pause_ends:
        return Standing(Reason.BACKING_OFF, pause_ends)
    if agent.in_flight:
        return Standing(Reason.IN_FLIGHT)
    muted = muted_until(agent.last_dispatched_at, window=facts.window, now=now)
    return Standing(Reason.MUTED, muted) if muted else _WANTED


def target_standing(facts: Snapshot) -> Standing:
    """How far a `per_target` schedule comes, which is the same for all its live agents."""
    version = facts.job.version if facts.job else ""
    success, now = facts.target_success, facts.now
    wanted_from = armed_from(facts.when, success, version=version, now=now)
    if wanted_from is None or wanted_from > now:
        return Standing(Reason.ALL_DONE, wanted_from)
    # One that is still trying may succeed yet, and one success is enough.
    if facts.others.get(Reason.IN_FLIGHT) or any(one.in_flight for one in facts.candidates):
        return Standing(Reason.IN_FLIGHT)
    muted = muted_until(facts.target_dispatched_at, window=facts.window, now=now)
    return Standing(Reason.MUTED, muted) if muted else _WANTED


def standings(facts: Snapshot) -> Iterator[tuple[Candidate, Standing]]:
    """Each candidate with how far it comes; a fire by hand has counts (`others`) alone."""
    if isinstance(facts.when, PerTarget):
        shared = target_standing(facts)
        for one in facts.candidates:
            yield one, shared if one.is_alive else Standing(Reason.NOBODY_ALIVE)
    else:
        for one in facts.candidates:
            yield one, standing(one, facts)


def agent_gates(facts: Snapshot, found: list[tuple[Candidate, Standing]]) -> Iterator[Gate]:
    """The gates that ask about agents, in their order. One is closed if nobody passes it."""
    counts = count(facts, found)
    total = sum(counts.values())
    if not total:
        yield Gate(Reason.NOBODY_ALIVE, is_open=False, detail="there is nobody to ask")
        return
    reached = total
    for reason in AGENT_GATES:
        stopped = counts.get(reason, 0)
        closed = stopped > 0 and stopped == reached
        yield Gate(
            reason,
            is_open=not closed,
            detail=f"{stopped} of {total}" if reached else "nobody comes this far",
            opens_at=_reopens(reason, facts, found) if closed else None,
        )
        reached -= stopped


def count(facts: Snapshot, found: list[tuple[Candidate, Standing]]) -> Mapping[Reason, int]:
    """How many agents stop at which gate, candidates and others together."""
    counts = Counter(one.reason for _, one in found)
    counts.update(facts.others)
    return {reason: counts[reason] for reason in sorted(counts, key=ORDER.__getitem__)}


def _reopens(
    reason: Reason, facts: Snapshot, found: list[tuple[Candidate, Standing]]
) -> datetime | None:
    """When the first agent that stops at `reason` or before may come further."""
    ends = [one.until for _, one in found if ORDER[one.reason] <= ORDER[reason]]
    return min((end for end in [*ends, facts.others_due_at] if end), default=None)


def due_gate(facts: Snapshot) -> Gate:
    """Whether a calendar's time has come; else it has fired for all times so far."""
    following = facts.next_fire_at
    words = f"next at {following:%Y-%m-%d %H:%M} UTC" if following else "it never fires again"
    return Gate(
        Reason.ALL_DONE,
        is_open=facts.is_due,
        detail="" if facts.is_due else words,
        opens_at=None if facts.is_due else following,
    )


def slot_gate(facts: Snapshot) -> Gate:
    """Whether the job's `max_concurrent` leaves room."""
    free = free_slots(facts.max_concurrent, facts.open_commands)
    if free is None:
        return Gate(Reason.NO_FREE_SLOT, is_open=True, detail="no limit")
    taken = "unknown" if facts.open_commands is None else facts.open_commands
    detail = f"{taken} of {facts.max_concurrent} taken"
    # Whole rosters are written at once; for them the limit holds at the hand-out.
    at_hand_out = isinstance(facts.when, Calendar) or facts.by_hand
    return Gate(Reason.NO_FREE_SLOT, is_open=at_hand_out or free > 0, detail=detail)
