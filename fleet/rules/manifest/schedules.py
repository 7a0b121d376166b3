"""A schedule: when and where a job runs, and under which constraints."""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from zoneinfo import ZoneInfo

from fleet.rules.bounds import Bounds, zone_named
from fleet.rules.manifest.fanout import read_rollout, read_target
from fleet.rules.manifest.parts import (
    opened,
    param_text,
    read_description,
    read_id,
    read_origin,
    read_params,
    read_tags,
)
from fleet.rules.manifest.timing import (
    Constraints,
    Misfire,
    RunsOn,
    read_bounds,
    read_constraints,
    read_on_failure,
    read_zone,
)
from fleet.rules.manifest.whens import read_when
from fleet.rules.problems import Problem
from fleet.rules.reader import Reader
from fleet.rules.retries import RetryPolicy
from fleet.rules.targets import Rollout, Target
from fleet.rules.when import PerPc, PerTarget, When, is_reconcile

MOST_JITTER = timedelta(hours=24)
# A command's signature is good for seven days at most.
LEAST_DEADLINE, MOST_DEADLINE = timedelta(seconds=1), timedelta(days=7)
# Exports begin with what a reader looks for; zone and side are read first, others need them.
_ORDER = (
    "id",
    "description",
    "when",
    "job_id",
    "params",
    "target",
    "rollout",
    "jitter",
    "starting_deadline",
    "active",
    "constraints",
    "on_failure",
    "tz",
    "misfire",
    "runs_on",
    "enabled",
    "tags",
    "origin",
)
_OLD_KEYS = {
    "cron": 'write when: {calendar: {cron: "0 9 * * mon-fri"}}',
    "mode": "write when: {per_pc: once}, {per_target: once} or {calendar: …}",
    "cooldown": "write when: {per_pc: {every: 6h}}",
}


@dataclass(frozen=True, slots=True)
class ScheduleManifest:
    """A valid schedule. `document` is its canonical form, `warnings` what has no effect."""

    id: str
    job_id: str
    when: When
    target: Target = field(default_factory=Target)
    rollout: Rollout | None = None
    jitter: timedelta = timedelta()
    starting_deadline: timedelta | None = None
    active: Bounds = field(default_factory=Bounds)
    constraints: Constraints = field(default_factory=Constraints)
    retry: RetryPolicy | None = None
    on_failure_backoff: bool = True
    tz: str = "local"
    misfire: Misfire = Misfire.SKIP
    runs_on: RunsOn = RunsOn.BACKEND
    enabled: bool = True
    description: str = ""
    params: tuple[tuple[str, str], ...] = ()
    tags: tuple[str, ...] = ()
    origin: tuple[tuple[str, str], ...] = ()
    document: dict[str, object] = field(compare=False, repr=False, kw_only=True)
    warnings: tuple[Problem, ...] = field(default=(), compare=False)

    def zone(self, local: ZoneInfo) -> ZoneInfo:
        """The schedule's zone; `local` is the server's, or the PC's own for `runs_on: agent`."""
        return zone_named(self.tz, local)


def parse_schedule(document: object, *, local: ZoneInfo | None = None) -> ScheduleManifest:
    """The schedule that a JSON-like value describes; ManifestError names all that is wrong.

    `local` is the zone that `tz: local` means here. Without it a period is refused only if it is
    the wrong way round in every zone.
    """
    reader = opened(document, "id, when, job_id")
    schedule = _read(reader, local)
    reader.refuse(_OLD_KEYS)
    _check_together(reader, schedule)
    document = reader.finish()
    reader.notes.raise_problems()
    return replace(
        schedule,
        document={key: document[key] for key in _ORDER if key in document},
        warnings=tuple(reader.notes.warnings),
    )


def _read(reader: Reader, local: ZoneInfo | None) -> ScheduleManifest:
    runs_on = reader.choice("runs_on", RunsOn, RunsOn.BACKEND)
    zone_name = read_zone(reader)
    retry, backs_off = read_on_failure(reader)
    return ScheduleManifest(
        id=read_id(reader, "id", "id: inventory-6h"),
        description=read_description(reader),
        when=read_when(reader),
        job_id=read_id(reader, "job_id", "job_id: inventory"),
        params=read_params(reader, lambda part, name: (name, param_text(part, name) or "")),
        target=read_target(reader),
        rollout=read_rollout(reader),
        jitter=reader.duration("jitter", least=timedelta(), most=MOST_JITTER) or timedelta(),
        starting_deadline=reader.duration(
            "starting_deadline", least=LEAST_DEADLINE, most=MOST_DEADLINE
        ),
        active=_read_active(reader, zone_name, local if runs_on is RunsOn.BACKEND else None),
        constraints=read_constraints(reader, runs_on),
        retry=retry,
        on_failure_backoff=backs_off,
        tz=zone_name,
        misfire=reader.choice("misfire", Misfire, Misfire.SKIP),
        runs_on=runs_on,
        enabled=reader.flag("enabled", default=True),
        tags=read_tags(reader),
        origin=read_origin(reader),
        document=reader.document,
    )


def _read_active(reader: Reader, zone_name: str, local: ZoneInfo | None) -> Bounds:
    part = reader.child("active", "from, until")
    active = read_bounds(part, zone_name, local)
    part.finish()
    return active


def _check_together(reader: Reader, schedule: ScheduleManifest) -> None:
    """Keys that are right alone and wrong, or without effect, together."""
    when, runs_on, rollout = schedule.when, schedule.runs_on, schedule.rollout
    if runs_on is RunsOn.AGENT:
        _check_agent(reader, when, rollout)
    if rollout and isinstance(when, PerPc):
        reader.warn("rollout", "has no effect with per_pc: each PC that is due is sent its own")
    if rollout and reader.has("target"):
        reader.warn("target", "has no effect beside rollout: the groups of the waves are meant")
    if reader.has("misfire") and is_reconcile(when):
        reader.warn("misfire", "has no effect with per_pc and per_target: they look every minute")


def _check_agent(reader: Reader, when: When, rollout: Rollout | None) -> None:
    if isinstance(when, PerTarget):
        reader.problem("when.per_target", "needs runs_on: backend; an agent knows only itself")
    if isinstance(when, PerPc) and when.per_version:
        reader.problem("when.per_pc", "once_per_version needs runs_on: backend")
    if rollout:
        reader.problem("rollout", "needs runs_on: backend; agents do not wait for each other")
