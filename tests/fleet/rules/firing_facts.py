"""Builders of snapshots with quiet defaults: everything open, nobody there."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from fleet.rules.cooldown import Success, latest
from fleet.rules.firing import Candidate, Dispatch, Skip, Snapshot, decide
from fleet.rules.freeze import NOT_FROZEN
from fleet.rules.when import Calendar, PerPc, PerTarget, When

T0 = datetime(2026, 6, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
TICK = Calendar("09:00")


def t(seconds: float) -> datetime:
    """The base instant plus `seconds`."""
    return T0 + timedelta(seconds=seconds)


ONCE = PerPc()


def make_facts(when: When = ONCE, **fields: object) -> Snapshot:
    """A snapshot in which every gate is open."""
    quiet = Snapshot(now=t(0), when=when, freeze=NOT_FROZEN, window=2 * MINUTE)
    return replace(quiet, **fields)  # type: ignore[arg-type]  # the fields' names are checked


def number(pc: str) -> int:
    """`a` is agent 1, `b` agent 2, and so on."""
    return ord(pc[0]) - ord("a") + 1


def facts_of_table(
    mode: str,
    cooldown: int | None,
    expected: Iterable[str],
    completions: Iterable[tuple[str, int]],
    now: int,
    *,
    roster: Iterable[str] | None = None,
) -> Snapshot:
    """The snapshot that one row of the table of `decide_fire` describes."""
    alive = list(expected)
    members = list(roster) if roster is not None else alive
    every = timedelta(seconds=cooldown) if cooldown is not None else None
    done = [(pc, Success(t(at))) for pc, at in completions]
    if mode == "tick":
        return make_facts(TICK, now=t(now))
    if mode == "target":
        counted = latest(success for pc, success in done if pc in members)
        return make_facts(
            PerTarget(every),
            now=t(now),
            candidates=tuple(Candidate(number(pc)) for pc in alive),
            target_success=counted,
        )
    candidates = tuple(
        Candidate(number(pc), success=latest(one for who, one in done if who == pc)) for pc in alive
    )
    return make_facts(PerPc(every), now=t(now), candidates=candidates)


WHOLE = "whole"


def outcome(facts: Snapshot) -> list[int] | str | None:
    """Who fires: a list, the whole target, or nobody."""
    match decide(facts):
        case Skip():
            return None
        case Dispatch(agents=None):
            return WHOLE
        case Dispatch(agents=agents):
            return list(agents or ())
