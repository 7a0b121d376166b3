"""Why a schedule fires or does not: now, at a past time, at a time to come; and for one agent.

Now and the future come from the pure rule on today's facts; the past is what was kept then, and
is never recomputed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from fleet.flow.agent_views import AgentView, agents_at, one_agent
from fleet.flow.evaluate import Evaluated, counted_of, evaluate, schedules_to_evaluate
from fleet.flow.freeze import read_freeze
from fleet.flow.manifests import local_zone
from fleet.flow.waiting_for import missing_from
from fleet.models import Agent, Command, Evaluation, Occurrence, Schedule
from fleet.rules import calendar
from fleet.rules.firing import (
    ORDER,
    Decision,
    Dispatch,
    Gate,
    Reason,
    Snapshot,
    decide,
    stops_early,
)
from fleet.rules.firing import (
    explain as gates_of,
)
from fleet.rules.manifest import ManifestError
from fleet.rules.when import Calendar, PerPc

MINUTE = timedelta(minutes=1)
MOST_COMMANDS = 20
TODAYS_FACTS = "with what is known now: who is there, what succeeded, what is open"
NOTHING_KEPT = "nothing is kept about that time"


class Tense(StrEnum):
    """Which time an explanation is about."""

    PAST = "past"
    NOW = "now"
    FUTURE = "future"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer, for a schedule or for one agent of it."""

    schedule: Schedule
    at: datetime
    tense: Tense
    # What it comes to: the first closed gate, or `dispatched`; None = nothing is known.
    reason: Reason | None
    detail: str = ""
    # When the closed gate may open.
    opens_at: datetime | None = None
    # Every gate in order; of the past only what was kept.
    gates: tuple[Gate, ...] = ()
    # How many agents stop at which gate, and some of them by name.
    counts: Mapping[str, int] = field(default_factory=dict)
    agents: Mapping[str, tuple[AgentView, ...]] = field(default_factory=dict)
    # The one agent that was asked about.
    agent: AgentView | None = None
    commands: tuple[Command, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """One line: the reason with its values."""
        if self.reason is None:
            return NOTHING_KEPT
        return ": ".join(part for part in (self.reason.value, self.detail) if part)


def explain(
    schedule: Schedule,
    *,
    now: datetime,
    agent: Agent | None = None,
    at: datetime | None = None,
) -> Explanation:
    """Explain a schedule at `at` (default now), with more about `agent` if one is given."""
    moment = at or now
    if moment < now:
        return _past(schedule, moment, agent)
    row = schedules_to_evaluate().get(pk=schedule.pk)
    tense = Tense.NOW if moment == now else Tense.FUTURE
    try:
        found = evaluate(row, now=moment, freeze=read_freeze(moment), heard_by=now)
    except ManifestError as error:
        return Explanation(row, moment, tense, Reason.ERROR, str(error))
    if tense is Tense.FUTURE:
        found = replace(found, facts=_facts_to_come(found))
    return _by_rule(found, tense, agent)


def _facts_to_come(found: Evaluated) -> Snapshot:
    """A calendar is due at a time to come if it fires in that minute."""
    facts, when = found.facts, found.manifest.when
    if not isinstance(when, Calendar):
        return facts
    tz = found.manifest.zone(local_zone())
    following = calendar.next_fire(when, facts.now - MINUTE, tz)
    is_due = following is not None and following <= facts.now
    after = calendar.next_fire(when, facts.now, tz)
    return replace(facts, is_due=is_due, next_fire_at=after)


def _by_rule(found: Evaluated, tense: Tense, agent: Agent | None) -> Explanation:
    facts = found.facts
    decided = decide(facts)
    notes = [missing_from(found.manifest, now=found.heard_by)]
    if tense is Tense.FUTURE:
        notes.append(TODAYS_FACTS)
    asks_agents = isinstance(facts.when, PerPc) and not stops_early(facts)
    base = Explanation(
        schedule=found.schedule,
        at=facts.now,
        tense=tense,
        reason=Reason.DISPATCHED,
        gates=gates_of(facts),
        counts=_counts(found, decided),
        agents=agents_at(found, decided) if asks_agents and agent is None else {},
        agent=one_agent(found, decided, agent) if agent is not None else None,
        commands=_commands(found.schedule, agent, facts.now) if agent is not None else (),
        notes=tuple(note for note in notes if note),
    )
    if isinstance(decided, Dispatch):
        return base
    return replace(base, reason=decided.reason, detail=decided.detail, opens_at=decided.opens_at)


def _counts(found: Evaluated, decided: Decision) -> dict[str, int]:
    """All agents by the gate that stops them: a decision about due agents knows those alone."""
    counts = dict(decided.counts)
    if isinstance(found.facts.when, PerPc) and found.facts.candidates:
        chosen = counts.get(Reason.DISPATCHED, 0)
        counts = dict(counted_of(found).by_reason)
        wanted = counts.pop(Reason.DISPATCHED, 0)
        if isinstance(decided, Dispatch) and decided.limit is None:
            chosen = wanted
        split = {Reason.NO_FREE_SLOT: max(wanted - chosen, 0), Reason.DISPATCHED: chosen}
        counts |= {reason: number for reason, number in split.items() if number}
    ordered = sorted(counts, key=ORDER.__getitem__)
    return {reason.value: counts[reason] for reason in ordered}


def _past(schedule: Schedule, at: datetime, agent: Agent | None) -> Explanation:
    """What was in force at that time, and what the agent's commands show."""
    kept = (
        Evaluation.objects.filter(schedule=schedule, since__lte=at)
        .exclude(until__lte=at)
        .order_by("-since")
        .first()
    )
    commands = _commands(schedule, agent, at) if agent is not None else ()
    notes = _nominal_times(schedule, at)
    if kept is None:
        return Explanation(schedule, at, Tense.PAST, None, commands=commands, notes=notes)
    reason = Reason(kept.reason)
    return Explanation(
        schedule=schedule,
        at=at,
        tense=Tense.PAST,
        reason=reason,
        detail=kept.detail,
        opens_at=kept.opens_at,
        gates=_gates_kept(reason, kept),
        counts=kept.counts,
        commands=commands,
        notes=(*notes, f"in force since {kept.since:%Y-%m-%d %H:%M} UTC"),
    )


def _gates_kept(reason: Reason, kept: Evaluation) -> tuple[Gate, ...]:
    """The gates up to the one that stopped it; whoever stops asks no further."""
    passed = [
        Gate(one, is_open=True)
        for one in Reason
        if ORDER[one] < ORDER[reason] and one is not Reason.DISPATCHED
    ]
    if reason in {Reason.DISPATCHED, Reason.ERROR}:
        return tuple(passed) if reason is Reason.DISPATCHED else ()
    return (*passed, Gate(reason, is_open=False, detail=kept.detail, opens_at=kept.opens_at))


def _nominal_times(schedule: Schedule, at: datetime) -> tuple[str, ...]:
    """What became of the calendar's nominal time of that minute."""
    found = Occurrence.objects.filter(
        schedule=schedule, nominal_at__gt=at - MINUTE, nominal_at__lte=at
    )
    return tuple(
        f"the time {one.nominal_at:%Y-%m-%d %H:%M} UTC was {one.state}"
        + (f": {one.reason}" if one.reason else "")
        for one in found
    )


def _commands(schedule: Schedule, agent: Agent | None, at: datetime) -> tuple[Command, ...]:
    """The agent's commands of the schedule's job up to that time, the newest first."""
    found = Command.objects.filter(agent=agent, job=schedule.job_id, created_at__lte=at)
    return tuple(found.select_related("revision").order_by("-pk")[:MOST_COMMANDS])
