"""Rows for tests, with quiet defaults. Every function returns what it wrote."""

import itertools
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from uuid import UUID

from fleet.flow.retention import first_id_at
from fleet.models import (
    Agent,
    AgentPresence,
    AgentState,
    Command,
    Execution,
    Group,
    Job,
    JobRevision,
    Membership,
    Origin,
    Schedule,
    ScheduleAgent,
    Shape,
    new_id,
)
from fleet.rules.command_states import CommandState
from fleet.rules.execution_states import ExecutionState
from fleet.rules.manifest import (
    execute_fingerprint,
    fingerprint,
    parse_job,
    parse_schedule,
    to_document,
)
from fleet.rules.when import Calendar, PerPc, PerTarget

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
Keys = Mapping[str, object]
_SHAPES = {PerPc: Shape.PER_PC, PerTarget: Shape.PER_TARGET, Calendar: Shape.CALENDAR}
_numbers = itertools.count(1)


def id_at(moment: datetime) -> UUID:
    """An id as it would have been made at a moment, whatever the real clock says."""
    return UUID(int=first_id_at(moment).int | secrets.randbits(62))


def make_agent(name: str = "", *, last_seen_at: datetime | None = NOW, **fields: object) -> Agent:
    """An active agent that was heard at `last_seen_at`; named pc-1, pc-2, …"""
    name = name or f"pc-{next(_numbers)}"
    uuid = new_id()
    values: dict[str, object] = {
        "uuid": uuid,
        "uuid_text": str(uuid),
        "name": name,
        "name_fold": name.casefold(),
        "reported_name": name,
        "state": AgentState.ACTIVE,
        "enrolled_at": NOW,
        "credential_at": NOW,
        "fingerprint": "f" * 64,
        "epoch": 1,
    }
    agent = Agent.objects.create(**(values | fields))
    AgentPresence.objects.create(agent=agent, last_seen_at=last_seen_at)
    return agent


def make_group(slug: str = "", *members: Agent) -> Group:
    """A group with those members."""
    slug = slug or f"group-{next(_numbers)}"
    group = Group.objects.create(slug=slug, created_at=NOW, updated_at=NOW)
    Membership.objects.bulk_create(Membership(group=group, agent=agent) for agent in members)
    return group


def make_job(slug: str = "", *, version: str = "1", execute: Keys | None = None) -> Job:
    """A job with one revision that is current; `execute` overrides parts of a small sh script."""
    slug = slug or f"job-{next(_numbers)}"
    job = Job.objects.create(slug=slug, created_at=NOW, updated_at=NOW)
    revise(job, version=version, execute=execute)
    return job


def revise(
    job: Job,
    *,
    version: str,
    current: bool = True,
    require_approval: bool = False,
    execute: Keys | None = None,
) -> JobRevision:
    """Another revision of the job, and its current one unless told otherwise."""
    manifest = parse_job(
        {
            "id": job.slug,
            "version": version,
            "execute": {
                "shell": "sh",
                "script": "echo hello",
                "timeout": "30s",
                **(execute or {}),
            },
            "require_approval": require_approval,
        }
    )
    revision = JobRevision.objects.create(
        job=job,
        number=job.revisions.count() + 1,
        version=version,
        manifest=to_document(manifest),
        sha256=fingerprint(to_document(manifest)),
        execute_sha256=execute_fingerprint(manifest),
        requires_approval=require_approval,
        created_at=NOW,
        created_by="alice",
    )
    job.latest = revision
    if current:
        job.current = revision
    job.save()
    return revision


def make_schedule(slug: str = "", *, job: Job | None = None, **keys: object) -> Schedule:
    """A schedule of the job, by default each PC every six hours; `keys` are manifest keys."""
    slug = slug or f"schedule-{next(_numbers)}"
    job = job or make_job()
    manifest = parse_schedule(
        {
            "id": slug,
            "job_id": job.slug,
            "when": {"per_pc": {"every": "6h"}},
            "target": {"all": True},
        }
        | keys
    )
    document = to_document(manifest)
    return Schedule.objects.create(
        slug=slug,
        job=job,
        manifest=document,
        fingerprint=fingerprint(document),
        timing_fingerprint=fingerprint(document),
        shape=_SHAPES[type(manifest.when)],
        enabled=manifest.enabled,
        created_at=NOW,
        updated_at=NOW,
    )


def make_schedule_agent(schedule: Schedule, agent: Agent, **fields: object) -> ScheduleAgent:
    """The state of an agent under a schedule: due now unless told otherwise."""
    return ScheduleAgent.objects.create(
        schedule=schedule, agent=agent, **({"due_at": NOW} | fields)
    )


def make_execution(job: Job | None = None, **fields: object) -> Execution:
    """A live execution of the job's current revision, asked for by a person."""
    job = job or make_job()
    values: dict[str, object] = {
        "job": job,
        "revision": job.current,
        "origin": Origin.MANUAL,
        "state": ExecutionState.LIVE.value,
        "actor": "alice",
        "planned": 1,
        "created_at": NOW,
        "deadline_at": NOW + timedelta(days=7),
    }
    return Execution.objects.create(**(values | fields))


def make_command(
    agent: Agent | None = None,
    *,
    execution: Execution | None = None,
    job: Job | None = None,
    state: CommandState = CommandState.QUEUED,
    **fields: object,
) -> Command:
    """A command of the execution (or of a new one of `job`) for the agent."""
    execution = execution or make_execution(job)
    values: dict[str, object] = {
        "execution": execution,
        "agent": agent or make_agent(),
        "job": execution.job,
        "revision": execution.revision,
        "schedule_id": execution.schedule_id,
        "state": state.value,
        "override_freeze": execution.override_freeze,
        "created_at": NOW,
        "deadline_at": execution.deadline_at,
    }
    return Command.objects.create(**(values | fields))
