"""One row of everything that the pages show, with any words in it, and every page's address."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from fleet.models import (
    Agent,
    ApiToken,
    Command,
    EnrolmentToken,
    Evaluation,
    Execution,
    Freeze,
    Group,
    Job,
    JobRevision,
    Occurrence,
    Output,
    OutputChunk,
    Result,
    Schedule,
    Wave,
)
from fleet.rules.command_states import CommandState
from tests.fleet.make import (
    NOW,
    make_agent,
    make_command,
    make_execution,
    make_group,
    make_job,
    make_schedule,
    make_schedule_agent,
    revise,
)

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows that pages are about."""

    agent: Agent
    group: Group
    job: Job
    revision: JobRevision
    schedule: Schedule
    calendar: Schedule
    execution: Execution
    ended: Command
    running: Command
    enrolment: EnrolmentToken
    token: ApiToken
    owner: User


def make_everything(words: str, owner: User, *, script: str = "") -> Rows:
    """One of everything, with `words` wherever a PC or a person may write them."""
    agent = make_agent(
        facts={"os": words, "agent_version": words, "shells": [words], words: words},
        reported_name=words[:255],
        state_reason=words[:500],
        zone=words[:100],
    )
    Agent.objects.filter(pk=agent.pk).update(name=words[:255], name_fold=words[:255].casefold())
    group = make_group("office", agent)
    Group.objects.filter(pk=group.pk).update(description=words)
    job, schedule, calendar = _plan(words, script or words, agent)
    execution, ended, running = _history(words, agent, job, schedule)
    Freeze.objects.filter(pk=1).update(is_set=True, reason=words, set_by=words[:200], set_at=NOW)
    times: dict[str, Any] = {"expires_at": NOW + 3650 * DAY, "created_at": NOW}
    enrolment = EnrolmentToken.objects.create(
        public_id="e" * 16, secret_hash="0" * 64, group=group, created_by=words[:200], **times
    )
    token = ApiToken.objects.create(
        public_id="a" * 16, secret_hash="0" * 64, user=owner, name=words[:100], **times
    )
    agent.refresh_from_db()
    return Rows(
        agent=agent,
        group=group,
        job=job,
        revision=job.revisions.earliest("number"),
        schedule=schedule,
        calendar=calendar,
        execution=execution,
        ended=ended,
        running=running,
        enrolment=enrolment,
        token=token,
        owner=owner,
    )


def _plan(words: str, script: str, agent: Agent) -> tuple[Job, Schedule, Schedule]:
    job = make_job("patch", version="1")
    revise(job, version="2", current=False, require_approval=True, execute={"script": script})
    JobRevision.objects.filter(job=job).update(created_by=words[:200], approved_by=words[:200])
    JobRevision.objects.filter(job=job, number=1).update(version=words[:100])
    schedule = make_schedule("patching", job=job, description=script, target={"groups": ["office"]})
    calendar = make_schedule("clock", job=job, when={"calendar": {"cron": "0 9 * * *"}})
    Schedule.objects.filter(pk=calendar.pk).update(next_fire_at=NOW + DAY)
    make_schedule_agent(schedule, agent, failures=3, last_failed_at=NOW)
    Evaluation.objects.create(
        schedule=schedule, since=NOW, reason="no target", detail=words[:1000], opens_at=NOW + DAY
    )
    Occurrence.objects.create(
        schedule=calendar,
        nominal_at=NOW,
        state="skipped",
        reason=words[:200],
        missed_before=2,
        late_s=100,
        settled_at=NOW,
    )
    return job, schedule, calendar


def _history(
    words: str, agent: Agent, job: Job, schedule: Schedule
) -> tuple[Execution, Command, Command]:
    execution = make_execution(
        job,
        schedule=schedule,
        schedule_slug="patching",
        actor=words[:200],
        reason=words or "because",
        override_freeze=True,
        end_reason=words[:200],
        planned=2,
    )
    Wave.objects.create(
        execution=execution, number=0, group_slug="office", due_at=NOW, deadline_at=NOW + DAY,
        reason=words[:200],
    )  # fmt: skip
    ended = make_command(agent, execution=execution, state=CommandState.FAILED, reason=words[:500])
    running = make_command(
        make_agent(), execution=execution, state=CommandState.STARTED, started_at=NOW
    )
    Result.objects.create(
        command_id=ended.pk,
        execution_id=execution.pk,
        agent_id=agent.pk,
        job_id=job.pk,
        schedule_id=schedule.pk,
        revision_id=job.revisions.earliest("number").pk,
        job_version=words[:100],
        outcome="failed",
        exit_code=1,
        reason=words[:500],
        note=words,
        late=True,
        conflicts=1,
        received_at=NOW,
    )
    for stream in ("stdout", "stderr"):
        Output.objects.create(
            command_id=ended.pk,
            stream=stream,
            head=words.encode("utf-8", "replace"),
            tail=words.encode("utf-8", "replace"),
            total=10_000_000,
            received_at=NOW,
        )
    OutputChunk.objects.create(
        command_id=running.pk,
        stream="stdout",
        offset=0,
        data=words.encode("utf-8", "replace"),
        received_at=NOW,
    )
    return execution, ended, running


_KEYS = {
    "agent": "agent",
    "group": "group",
    "job": "job",
    "jobrevision": "revision",
    "schedule": "schedule",
    "execution": "execution",
    "command": "running",
    "result": "ended",
    "enrolmenttoken": "enrolment",
    "apitoken": "token",
    "freeze": "agent",
}


def fleet_pages() -> list[tuple[str, str]]:
    """The name and the route of every page of the fleet in the admin."""
    return sorted(
        (name, route)
        for name, route in _walk(get_resolver().url_patterns, "")
        if route.startswith("admin/fleet/") and name
    )


def _walk(
    patterns: list[URLPattern | URLResolver], prefix: str
) -> Iterator[tuple[str | None, str]]:
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _walk(pattern.url_patterns, route)
        else:
            yield pattern.name, route


def address_of(name: str, route: str, rows: Rows) -> str:
    """The address of a page about the row of its model."""
    model = name.split("_")[1]
    row: Any = getattr(rows, _KEYS[model])
    key = row.command_id if isinstance(row, Result) else row.pk
    if "stream" in route:
        return reverse(f"admin:{name}", args=[rows.ended.pk, "stdout"])
    return reverse(f"admin:{name}", args=[key] if "object_id" in route else [])
