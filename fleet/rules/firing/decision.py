"""Dispatch or skip, and the same shown gate by gate."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from fleet.rules.firing.facts import Candidate, Snapshot
from fleet.rules.firing.reasons import IGNORED_BY_HAND, Gate, Reason
from fleet.rules.firing.schedule_gates import SCHEDULE_GATES
from fleet.rules.firing.standing import (
    Standing,
    agent_gates,
    count,
    due_gate,
    slot_gate,
    standings,
)
from fleet.rules.slots import free_slots
from fleet.rules.when import Calendar


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Fire. `agents` None = the whole target, alive or not; else these, in this order.

    By hand, those of the target that are in flight are left out by whoever writes the commands.
    """

    agents: tuple[int, ...] | None
    # How many agents stopped at which gate; those chosen are under `dispatched`.
    counts: Mapping[Reason, int]
    # More agents like them are due: fill up to `limit` (None = without limit).
    has_more: bool = False
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Skip:
    """Do nothing, because of the first closed gate."""

    reason: Reason
    detail: str
    opens_at: datetime | None
    counts: Mapping[Reason, int]


Decision = Dispatch | Skip
_Found = list[tuple[Candidate, Standing]]


def decide(facts: Snapshot) -> Decision:
    """Fire or not: the first closed gate stops, and no later one is asked."""
    for ask in SCHEDULE_GATES:
        gate = ask(facts)
        if _stops(gate, facts):
            return Skip(gate.reason, gate.detail, gate.opens_at, {})
    if isinstance(facts.when, Calendar) and not facts.by_hand:
        return _on_calendar(facts)
    found = list(standings(facts))
    for gate in _later_gates(facts, found):
        if _stops(gate, facts):
            return Skip(gate.reason, gate.detail, gate.opens_at, count(facts, found))
    return _dispatch(facts, found)


def explain(facts: Snapshot) -> tuple[Gate, ...]:
    """Every gate in order with its verdict; the first closed one is where `decide` stops."""
    gates = [ask(facts) for ask in SCHEDULE_GATES]
    if isinstance(facts.when, Calendar) and not facts.by_hand:
        gates.extend((due_gate(facts), slot_gate(facts)))
    else:
        gates.extend(_later_gates(facts, list(standings(facts))))
    return tuple(_seen(gate, facts) for gate in gates)


def stops_early(facts: Snapshot) -> bool:
    """Whether a gate of the schedule itself is closed, so that nobody needs to ask its agents."""
    return any(_stops(ask(facts), facts) for ask in SCHEDULE_GATES)


def _on_calendar(facts: Snapshot) -> Decision:
    gate = due_gate(facts)
    if not gate.is_open:
        return Skip(gate.reason, gate.detail, gate.opens_at, {})
    return Dispatch(None, {Reason.DISPATCHED: facts.roster or 0})


def _stops(gate: Gate, facts: Snapshot) -> bool:
    return not gate.is_open and not (facts.by_hand and gate.reason in IGNORED_BY_HAND)


def _seen(gate: Gate, facts: Snapshot) -> Gate:
    if gate.is_open or _stops(gate, facts):
        return gate
    return Gate(gate.reason, is_open=True, detail=f"passed by hand: {gate.detail}".strip(": "))


def _later_gates(facts: Snapshot, found: _Found) -> Iterator[Gate]:
    yield from agent_gates(facts, found)
    yield slot_gate(facts)


def _dispatch(facts: Snapshot, found: _Found) -> Dispatch:
    if facts.by_hand:
        return Dispatch(None, count(facts, found))
    wanted = [one for one, stands in found if stands.reason is Reason.DISPATCHED]
    wanted.sort(key=lambda one: (one.due_at, one.agent))
    limit = free_slots(facts.max_concurrent, facts.open_commands)
    chosen = wanted if limit is None else wanted[:limit]
    counts = dict(count(facts, found)) | {Reason.DISPATCHED: len(chosen)}
    if len(chosen) < len(wanted):
        counts[Reason.NO_FREE_SLOT] = len(wanted) - len(chosen)
    more = facts.has_more and (limit is None or limit > len(chosen))
    return Dispatch(tuple(one.agent for one in chosen), counts, more, limit)
