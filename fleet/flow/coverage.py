"""How far a schedule has come: of all the PCs it means, how many did the job.

Read from the facts of (job, agent) and from what is open, never from history.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db.models import Case, CharField, Count, Exists, OuterRef, QuerySet, Value, When

from fleet.flow.manifests import schedule_manifest
from fleet.flow.rosters import roster_of, roster_of_groups
from fleet.models import Agent, Command, JobAgent, Schedule, ScheduleAgent, Shape
from fleet.rules.command_states import HELD, CommandState

_HELD = [state.value for state in HELD]


class Done(StrEnum):
    """How one PC stands."""

    OK = "ok"  # its last run succeeded
    FAIL = "fail"  # its last run ended in any other way
    RUNNING = "running"  # wins over everything
    PENDING = "pending"  # it never ran


@dataclass(frozen=True, slots=True)
class Coverage:
    """M of N done, PCs that are off included."""

    ok: int = 0
    fail: int = 0
    running: int = 0
    pending: int = 0

    @property
    def total(self) -> int:
        """All the PCs that the schedule means."""
        return self.ok + self.fail + self.running + self.pending


@dataclass(frozen=True, slots=True)
class Covered:
    """One PC: how it stands, with the version and the end of its last run (not while it runs)."""

    name: str
    uuid: str
    state: Done
    version: str = ""
    ended_at: datetime | None = None


def coverage_of(schedule: Schedule) -> Coverage:
    """Count the PCs of a schedule. Raises ManifestError where it cannot be read."""
    rows = _roster(schedule).annotate(done=_done(schedule.job_id, OuterRef("pk")))
    counts = rows.order_by().values_list("done").annotate(agents=Count("pk"))
    return Coverage(**dict(counts))


def coverages_of(schedules: Iterable[Schedule], *, most: int) -> dict[int, Coverage]:
    """The coverage of those reconcile schedules that have at most `most` PCs, by key.

    For lists, which must not wait for large targets: two queries.
    """
    keys = [one.pk for one in schedules if one.shape != Shape.CALENDAR]
    sizes = (
        ScheduleAgent.objects.filter(schedule__in=keys)
        .values_list("schedule")
        .annotate(agents=Count("pk"))
        .filter(agents__lte=most)
    )
    small = [key for key, _ in sizes]
    rows = (
        ScheduleAgent.objects.filter(schedule__in=small)
        .annotate(done=_done(OuterRef("schedule__job"), OuterRef("agent")))
        .order_by()
        .values_list("schedule", "done")
        .annotate(agents=Count("pk"))
    )
    counts: dict[int, dict[str, int]] = {}
    for key, done, agents in rows:
        counts.setdefault(key, {})[done] = agents
    return {key: Coverage(**found) for key, found in counts.items()}


def covered_pcs(schedule: Schedule, *, state: Done | None = None) -> QuerySet[Agent]:
    """The PCs of a schedule by name, each with its `done`; only those in `state` if given."""
    rows = _roster(schedule).annotate(done=_done(schedule.job_id, OuterRef("pk")))
    rows = rows.order_by("name_fold")
    return rows.filter(done=state.value) if state is not None else rows


def covered(schedule: Schedule, agents: Iterable[Agent]) -> list[Covered]:
    """A page of `covered_pcs`, with versions and times: one query."""
    page = list(agents)
    facts = {
        fact.agent_id: fact for fact in JobAgent.objects.filter(job=schedule.job_id, agent__in=page)
    }
    return [_covered(agent, facts.get(agent.pk)) for agent in page]


def _covered(agent: Agent, fact: JobAgent | None) -> Covered:
    state = Done(getattr(agent, "done"))  # noqa: B009  # an annotation
    if fact is None or state is Done.RUNNING:
        return Covered(agent.name, agent.uuid_text, state)
    return Covered(agent.name, agent.uuid_text, state, fact.last_version, fact.last_ended_at)


def _roster(schedule: Schedule) -> QuerySet[Agent]:
    manifest = schedule_manifest(schedule)
    if manifest.rollout is not None:
        return roster_of_groups(wave.group for wave in manifest.rollout.waves)
    return roster_of(manifest.target)


def _done(job: Any, agent: OuterRef) -> Case:
    facts = JobAgent.objects.filter(job=job, agent=agent).exclude(last_state="")
    running = Command.objects.filter(job=job, agent=agent, state__in=_HELD)
    return Case(
        When(Exists(running), then=Value(Done.RUNNING.value)),
        When(
            Exists(facts.filter(last_state=CommandState.SUCCEEDED.value)),
            then=Value(Done.OK.value),
        ),
        When(Exists(facts), then=Value(Done.FAIL.value)),
        default=Value(Done.PENDING.value),
        output_field=CharField(),
    )
