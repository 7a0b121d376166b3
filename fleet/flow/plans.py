"""A dispatch as its caller wants it, and as it is kept with its execution."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Self

from fleet.models import Execution, JobRevision, Origin, Schedule
from fleet.rules.deadlines import LONGEST_WAIT
from fleet.rules.fanout import (
    Opening,
    PlannedWave,
    Terms,
    Timetable,
    latest_deadline,
    plan_waves,
    seed_of,
)
from fleet.rules.retries import RetryPolicy
from fleet.rules.targets import FailureLimit, Rollout, Target

NOTHING = timedelta(0)


@dataclass(frozen=True, slots=True)
class Chosen:
    """These agents (keys), a thousand at most."""

    agents: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WholeTarget:
    """Every member, alive or not; with `skip_in_flight` without those the job is open on."""

    skip_in_flight: bool = False


@dataclass(frozen=True, slots=True)
class LiveMembers:
    """Live members on which the job is not open, at most `limit`."""

    limit: int | None = None


@dataclass(frozen=True, slots=True)
class DueAgents:
    """The schedule's due and live agents, longest due first, at most `limit`."""

    limit: int | None = None


Selection = Chosen | WholeTarget | LiveMembers | DueAgents


@dataclass(frozen=True, slots=True)
class DispatchPlan:
    """One dispatch. `actor` is the name that history shows, `target` what was asked for."""

    revision: JobRevision
    origin: Origin
    actor: str
    target: Target
    selection: Selection = field(default_factory=WholeTarget)
    actor_id: int | None = None
    reason: str = ""
    override_freeze: bool = False
    # Written without commands until `dispatch.start` is called for it.
    needs_approval: bool = False
    schedule: Schedule | None = None
    # Of a calendar: the time that this fire is for.
    nominal_at: datetime | None = None
    # Sent by a per_pc or per_target schedule (by hand or not): one open at a time, and it mutes.
    reconciles: bool = False
    rollout: Rollout | None = None
    # The opening hours that bind it; by default everything is open.
    timetable: Timetable = field(default_factory=Timetable)
    jitter: timedelta = NOTHING
    # How long a command may wait from its own start on, and when at the latest it may start.
    wait: timedelta = LONGEST_WAIT
    deadline_at: datetime | None = None
    retry: RetryPolicy | None = None
    max_concurrent: int | None = None
    params: Mapping[str, str] = field(default_factory=dict)

    @property
    def terms(self) -> Terms:
        """What its commands have in common; the draws follow the schedule, or else the job."""
        owner = self.schedule.slug if self.schedule else self.revision.job.slug
        return Terms(self.jitter, self.wait, seed_of(owner))

    def waves(self, now: datetime) -> tuple[PlannedWave, ...]:
        """The waves with their times; a single one without a group where there is no rollout."""
        if self.rollout is not None:
            return plan_waves(self.rollout, start=now, timetable=self.timetable)
        return (PlannedWave(0, "", self.timetable.opening_at(now)),)


@dataclass(frozen=True, slots=True)
class StoredWave:
    """One wave as kept: its number, group ("" = no rollout), time, spread and last start."""

    number: int
    group: str
    due_at: datetime
    span: timedelta
    deadline_at: datetime

    @classmethod
    def of(cls, wave: PlannedWave, terms: Terms, *, latest: datetime | None) -> Self:
        """The wave of a plan whose commands may start until `latest` (None = no own limit)."""
        opening = wave.opening
        if latest is not None:
            # A deadline still allows its own instant, the close of an opening does not.
            closes = latest + timedelta(milliseconds=1)
            opening = Opening(opening.due_at, min(closes, opening.closes_at or closes))
        return cls(
            wave.number,
            wave.group,
            opening.due_at,
            terms.span(opening),
            latest_deadline(terms, opening),
        )


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """What an execution keeps of its plan, to write its commands from, now or in chunks."""

    seed: int
    wait: timedelta
    reconciles: bool
    selection: Selection
    waves: tuple[StoredWave, ...]
    max_failures: FailureLimit | None

    @classmethod
    def of(cls, execution: Execution) -> Self:
        """Read it back."""
        kept = execution.plan
        limit = kept["max_failures"]
        return cls(
            seed=kept["seed"],
            wait=timedelta(seconds=kept["wait_s"]),
            reconciles=kept["reconciles"],
            selection=_read_selection(kept["pick"]),
            waves=tuple(_read_wave(wave) for wave in kept["waves"]),
            max_failures=FailureLimit(limit["count"], limit["percent"]) if limit else None,
        )


def to_store(plan: DispatchPlan, waves: tuple[StoredWave, ...]) -> dict[str, Any]:
    """The plan as JSON, for `Execution.plan`."""
    retry, limit = plan.retry, plan.rollout.max_failures if plan.rollout else None
    return {
        "jitter_s": plan.jitter.total_seconds(),
        "wait_s": plan.wait.total_seconds(),
        "deadline_at": plan.deadline_at.isoformat() if plan.deadline_at else None,
        "retry": {"max": retry.max, "backoff_s": retry.backoff_seconds} if retry else None,
        "max_concurrent": plan.max_concurrent,
        "max_failures": {"count": limit.count, "percent": limit.percent} if limit else None,
        "params": dict(plan.params),
        "seed": plan.terms.seed,
        "reconciles": plan.reconciles,
        "pick": _selection(plan.selection),
        "waves": [_wave(wave) for wave in waves],
    }


def shifted(waves: list[dict[str, Any]], by: timedelta, latest: str | None) -> list[dict[str, Any]]:
    """Stored waves that go out later by `by`, none of them starting after `latest`."""
    moved = []
    for wave in map(_read_wave, waves):
        deadline = wave.deadline_at + by
        if latest is not None:
            deadline = min(deadline, datetime.fromisoformat(latest))
        later = StoredWave(wave.number, wave.group, wave.due_at + by, wave.span, deadline)
        moved.append(_wave(later))
    return moved


def write_target(target: Target) -> dict[str, Any]:
    """The target as JSON, in the manifest's own shape."""
    shape: dict[str, Any] = {"all": True} if target.all else {}
    if target.groups:
        shape["groups"] = list(target.groups)
    if target.pcs:
        shape["pcs"] = list(target.pcs)
    return shape


def read_target(shape: dict[str, Any]) -> Target:
    """The target that an execution keeps."""
    return Target(
        shape.get("all", False), tuple(shape.get("groups", ())), tuple(shape.get("pcs", ()))
    )


def _selection(selection: Selection) -> dict[str, Any]:
    match selection:
        case Chosen(agents):
            return {"from": "agents", "agents": list(agents)}
        case WholeTarget(skip_in_flight):
            return {"from": "target", "skip_in_flight": skip_in_flight}
        case LiveMembers(limit):
            return {"from": "alive", "limit": limit}
        case DueAgents(limit):
            return {"from": "due", "limit": limit}


def _read_selection(kept: dict[str, Any]) -> Selection:
    match kept["from"]:
        case "agents":
            return Chosen(tuple(kept["agents"]))
        case "alive":
            return LiveMembers(kept["limit"])
        case "due":
            return DueAgents(kept["limit"])
        case _:
            return WholeTarget(kept["skip_in_flight"])


def _wave(wave: StoredWave) -> dict[str, Any]:
    return {
        "number": wave.number,
        "group": wave.group,
        "due_at": wave.due_at.isoformat(),
        "span_s": wave.span.total_seconds(),
        "deadline_at": wave.deadline_at.isoformat(),
    }


def _read_wave(kept: dict[str, Any]) -> StoredWave:
    return StoredWave(
        kept["number"],
        kept["group"],
        datetime.fromisoformat(kept["due_at"]),
        timedelta(seconds=kept["span_s"]),
        datetime.fromisoformat(kept["deadline_at"]),
    )
