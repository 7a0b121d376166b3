"""How far single agents come under a schedule, by name and in words."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F, OuterRef, QuerySet, Subquery, Window
from django.db.models.functions import RowNumber

from fleet.flow.counting import STANDING, with_standing
from fleet.flow.evaluate import Evaluated, whole_roster
from fleet.flow.rosters import has_open_command
from fleet.models import Agent, AgentState, JobAgent, ScheduleAgent
from fleet.rules.cooldown import Success
from fleet.rules.firing import Candidate, Decision, Dispatch, Reason, Standing, standing
from fleet.rules.firing.standing import target_standing
from fleet.rules.firing.words import sentence
from fleet.rules.liveness import is_alive
from fleet.rules.when import Calendar, PerPc

MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class AgentView:
    """One agent under one schedule. `reason` None = the schedule does not mean it."""

    name: str
    uuid: str
    reason: Reason | None
    words: str
    until: datetime | None = None
    last_seen_at: datetime | None = None


def agents_at(found: Evaluated, decided: Decision) -> Mapping[str, tuple[AgentView, ...]]:
    """Some agents of a per_pc schedule for each gate that stops any: one query."""
    rows = with_standing(
        found.schedule, found.terms, now=found.facts.now, heard_by=found.heard_by
    ).annotate(
        place=Window(
            RowNumber(),
            partition_by=F(STANDING),
            order_by=[F("due_at").asc(nulls_last=True), F("agent_id").asc()],
        )
    )
    views: dict[str, list[AgentView]] = {}
    for row in _with_facts(rows.filter(place__lte=MOST_NAMED), found.schedule.job_id):
        view = _view(row, found, decided)
        if view.reason is not None:
            views.setdefault(view.reason.value, []).append(view)
    return {reason.value: tuple(views[reason.value]) for reason in Reason if reason.value in views}


def one_agent(found: Evaluated, decided: Decision, agent: Agent) -> AgentView:
    """How far one agent comes."""
    if isinstance(found.facts.when, Calendar):
        return _on_calendar(found, agent)
    rows = ScheduleAgent.objects.filter(schedule=found.schedule, agent=agent)
    row = next(iter(_with_facts(rows, found.schedule.job_id)), None)
    if row is None:
        return AgentView(agent.name, agent.uuid_text, None, "the schedule does not mean it")
    return _view(row, found, decided)


def _on_calendar(found: Evaluated, agent: Agent) -> AgentView:
    if not whole_roster(found).filter(pk=agent.pk).exists():
        return AgentView(agent.name, agent.uuid_text, None, "the schedule does not mean it")
    words = "it is sent the job whenever the calendar fires, and may fetch it until its deadline"
    return AgentView(agent.name, agent.uuid_text, Reason.DISPATCHED, words)


def _with_facts(rows: QuerySet[ScheduleAgent], job_id: int) -> list[dict[str, Any]]:
    fact = JobAgent.objects.filter(job=job_id, agent=OuterRef("agent"))
    found = rows.annotate(
        success_at=Subquery(fact.values("last_success_at")[:1]),
        success_version=Subquery(fact.values("last_success_version")[:1]),
        is_busy=has_open_command(job_id, "agent"),
        name=F("agent__name"),
        uuid=F("agent__uuid_text"),
        state=F("agent__state"),
        last_seen_at=F("agent__presence__last_seen_at"),
    ).values()
    return [dict(row) for row in found]


def _view(row: dict[str, Any], found: Evaluated, decided: Decision) -> AgentView:
    at = row["success_at"]
    seen = row["last_seen_at"] if row["state"] == AgentState.ACTIVE else None
    candidate = Candidate(
        agent=row["agent_id"],
        is_alive=is_alive(seen, now=found.heard_by),
        success=Success(at, row["success_version"]) if at is not None else None,
        last_dispatched_at=row["last_dispatched_at"],
        failures=row["failures"],
        last_failed_at=row["last_failed_at"],
        in_flight=row["is_busy"],
    )
    stands = _stands(candidate, found, decided)
    words = sentence(candidate, stands, last_seen_at=row["last_seen_at"])
    if row["state"] != AgentState.ACTIVE:
        words = f"takes no work: {row['state']}"
    return AgentView(
        row["name"], row["uuid"], stands.reason, words, stands.until, row["last_seen_at"]
    )


def _stands(candidate: Candidate, found: Evaluated, decided: Decision) -> Standing:
    """The agent's own standing; who is wanted beyond the free slots stops at the last gate."""
    facts = found.facts
    if isinstance(facts.when, PerPc):
        stands = standing(candidate, facts)
    elif candidate.is_alive:
        stands = target_standing(facts)
    else:
        stands = Standing(Reason.NOBODY_ALIVE)
    if stands.reason is not Reason.DISPATCHED:
        return stands
    chosen = decided.agents if isinstance(decided, Dispatch) else ()
    has_room = isinstance(decided, Dispatch) and decided.has_more
    if chosen is None or candidate.agent in chosen or has_room:
        return stands
    if isinstance(decided, Dispatch) or decided.reason is Reason.NO_FREE_SLOT:
        return Standing(Reason.NO_FREE_SLOT)
    return stands
