"""Gather what the decision about one schedule rests on. Reads only, in a fixed number of queries.

Of a fleet of any size only the agents that are due are read, a thousand at most; the others are
counted, and that only when nobody is due. History is never read.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Count, F, Max, OuterRef, Q, QuerySet, Subquery

from fleet.flow.counting import Counted, count_standings
from fleet.flow.manifests import schedule_manifest, terms_of, timetable_of
from fleet.flow.rosters import (
    due_rows,
    has_open_command,
    is_alive,
    roster_of,
    roster_of_groups,
)
from fleet.models import Agent, Command, JobAgent, JobRevision, Schedule, ScheduleAgent
from fleet.rules.cooldown import LONG_AGO, Success
from fleet.rules.firing import Candidate, JobFacts, Reason, Snapshot, stops_early
from fleet.rules.freeze import FreezeState
from fleet.rules.manifest import ScheduleManifest
from fleet.rules.rearming import Terms
from fleet.rules.when import Calendar, PerPc

MOST_CANDIDATES = 1000


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The facts about one schedule and the manifests that they came from."""

    schedule: Schedule
    manifest: ScheduleManifest
    revision: JobRevision | None
    terms: Terms
    facts: Snapshot
    heard_by: datetime


def schedules_to_evaluate() -> QuerySet[Schedule]:
    """Schedules with everything that `evaluate` reads about them and their jobs."""
    return Schedule.objects.select_related("job__current")


def evaluate(
    schedule: Schedule,
    *,
    now: datetime,
    freeze: FreezeState,
    by_hand: bool = False,
    heard_by: datetime | None = None,
) -> Evaluated:
    """Gather the facts about a schedule of `schedules_to_evaluate`.

    For a time to come, `heard_by` is the moment at which its agents are to be alive. Raises
    ManifestError where what is stored cannot be read. At most four queries.
    """
    manifest = schedule_manifest(schedule)
    revision = schedule.job.current
    terms = terms_of(manifest, revision)
    facts = _facts_of_schedule(schedule, manifest, terms, now=now, freeze=freeze)
    facts = replace(facts, by_hand=by_hand)
    found = Evaluated(schedule, manifest, revision, terms, facts, heard_by or now)
    if stops_early(found.facts):
        return found
    return replace(found, facts=_with_agents(found))


def _facts_of_schedule(
    schedule: Schedule,
    manifest: ScheduleManifest,
    terms: Terms,
    *,
    now: datetime,
    freeze: FreezeState,
) -> Snapshot:
    job = schedule.job
    on_calendar = isinstance(manifest.when, Calendar)
    fires_at = schedule.next_fire_at
    return Snapshot(
        now=now,
        when=manifest.when,
        freeze=freeze,
        window=terms.window,
        job=None
        if job.deleted_at
        else JobFacts(terms.version, job.revoked_at is not None, job.current is not None),
        timetable=timetable_of(manifest),
        is_enabled=schedule.enabled,
        runs_on_agent=schedule.runs_on_agent,
        has_target=manifest.target.is_specified or manifest.rollout is not None,
        # Calendars resolve their target when they fire.
        is_computing=schedule.targets_dirty_at is not None and not on_calendar,
        backs_off=terms.backs_off,
        max_concurrent=manifest.constraints.max_concurrent,
        target_dispatched_at=schedule.last_dispatched_at,
        is_due=fires_at is not None and fires_at <= now,
        next_fire_at=fires_at,
    )


def _with_agents(found: Evaluated) -> Snapshot:
    facts = found.facts
    if facts.by_hand:
        return _by_hand(found)
    if isinstance(facts.when, Calendar):
        return replace(facts, roster=whole_roster(found).count()) if facts.is_due else facts
    if facts.max_concurrent is not None:
        open_commands = Command.objects.open().filter(job=found.schedule.job_id).count()
        facts = replace(facts, open_commands=open_commands)
    found = replace(found, facts=facts)
    return _per_pc(found) if isinstance(facts.when, PerPc) else _per_target(found)


def whole_roster(found: Evaluated) -> QuerySet[Agent]:
    """Everybody that the schedule means, alive or not."""
    rollout = found.manifest.rollout
    if rollout is not None:
        return roster_of_groups(wave.group for wave in rollout.waves)
    return roster_of(found.manifest.target)


def _by_hand(found: Evaluated) -> Snapshot:
    roster = whole_roster(found)
    total = roster.count()
    busy = roster.filter(has_open_command(found.schedule.job_id)).count()
    counts = {Reason.IN_FLIGHT: busy, Reason.DISPATCHED: total - busy}
    others = {reason: number for reason, number in counts.items() if number}
    return replace(found.facts, roster=total, others=others)


def _per_pc(found: Evaluated) -> Snapshot:
    """The due agents; where nobody is due, how many stop at which gate."""
    schedule, facts = found.schedule, found.facts
    due = due_rows(schedule.pk, schedule.job_id, facts.now, heard_by=found.heard_by)
    rows = _with_success(due, schedule)
    if rows:
        candidates = tuple(_candidate(row) for row in rows[:MOST_CANDIDATES])
        return replace(facts, candidates=candidates, has_more=len(rows) > MOST_CANDIDATES)
    counted = counted_of(found)
    others = dict(counted.by_reason)
    # Wanted by today's facts, yet not due by the stored time, which is what fires.
    not_due = others.pop(Reason.DISPATCHED, 0)
    if not_due:
        others[Reason.ALL_DONE] = others.get(Reason.ALL_DONE, 0) + not_due
    return replace(facts, roster=counted.total, others=others, others_due_at=counted.next_due_at)


def counted_of(found: Evaluated) -> Counted:
    """How many agents of a per_pc schedule stop at which gate."""
    now = found.facts.now
    return count_standings(found.schedule, found.terms, now=now, heard_by=found.heard_by)


def _with_success(rows: QuerySet[ScheduleAgent], schedule: Schedule) -> list[dict[str, Any]]:
    success = JobAgent.objects.filter(job=schedule.job_id, agent=OuterRef("agent"))
    found = rows.annotate(
        success_at=Subquery(success.values("last_success_at")[:1]),
        success_version=Subquery(success.values("last_success_version")[:1]),
    ).values(
        "agent_id",
        "due_at",
        "last_dispatched_at",
        "failures",
        "last_failed_at",
        "success_at",
        "success_version",
    )
    return [dict(row) for row in found[: MOST_CANDIDATES + 1]]


def _candidate(row: dict[str, Any]) -> Candidate:
    at = row["success_at"]
    return Candidate(
        agent=row["agent_id"],
        success=Success(at, row["success_version"]) if at is not None else None,
        last_dispatched_at=row["last_dispatched_at"],
        failures=row["failures"],
        last_failed_at=row["last_failed_at"],
        due_at=row["due_at"],
    )


def _per_target(found: Evaluated) -> Snapshot:
    """The live members, whoever was sent the job longest ago first, and what any achieved."""
    schedule, facts = found.schedule, found.facts
    rows = ScheduleAgent.objects.filter(schedule=schedule)
    alive = is_alive(found.heard_by, "agent__")
    busy = Q(has_open_command(schedule.job_id, "agent"))
    counts = rows.aggregate(
        roster=Count("pk"),
        silent=Count("pk", filter=~alive & ~busy),
        busy=Count("pk", filter=busy),
    )
    success = JobAgent.objects.filter(
        job=schedule.job_id, agent__in=rows.values("agent")
    ).aggregate(at=Max("last_success_at"))["at"]
    ready = (
        rows.filter(alive)
        .exclude(busy)
        .order_by(F("last_dispatched_at").asc(nulls_first=True), "agent_id")
        .values_list("agent_id", "last_dispatched_at")
    )
    members = list(ready[: MOST_CANDIDATES + 1])
    others = {Reason.NOBODY_ALIVE: counts["silent"], Reason.IN_FLIGHT: counts["busy"]}
    return replace(
        facts,
        roster=counts["roster"],
        candidates=tuple(
            Candidate(agent=agent, due_at=last or LONG_AGO)
            for agent, last in members[:MOST_CANDIDATES]
        ),
        has_more=len(members) > MOST_CANDIDATES,
        others={reason: number for reason, number in others.items() if number},
        target_success=Success(success) if success is not None else None,
    )
