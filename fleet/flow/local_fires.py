"""What agents fired by themselves becomes commands: one for each agent and id, on receipt.

The ids are the agents' own, so they name nothing outside their agent; inside the server such a
command has a key like any other.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from fleet.flow.manifests import job_manifest, schedule_manifest
from fleet.models import Command, JobRevision, Schedule
from fleet.rules.command_states import CommandState, give_up_at
from fleet.rules.manifest import ManifestError
from fleet.rules.report_fields import within_reason
from fleet.rules.report_items import LocalFire, Result, Start
from fleet.rules.reports import Report
from fleet.rules.retries import RetryPolicy

logger = logging.getLogger(__name__)

# The server's key of a command by the agent's id of it.
Keys = Mapping[UUID, UUID]


@dataclass(frozen=True, slots=True)
class _Fire:
    """A fire that was not heard of before."""

    told_as: UUID
    local: LocalFire
    at: datetime


def known_locally(agent_id: int, report: Report, *, now: datetime) -> Keys:
    """Return the keys of the report's local fires; those that are new become commands first.

    A fire of a job that nobody knows (any more) has none, and is answered for as unknown.
    """
    named = {start.command for start in report.started}
    named |= {result.command for result in report.results}
    named |= {chunk.command for chunk in report.output}
    if not named:
        return {}
    new = _told(report, now)
    keys = _keys(agent_id, named)
    unknown = [fire for told_as, fire in new.items() if told_as not in keys]
    if not unknown:
        return keys
    _write(agent_id, unknown, now)
    return _keys(agent_id, named)


def by_key(report: Report, keys: Keys) -> Report:
    """Return the report with the server's keys in place of the agent's ids."""
    if not keys:
        return report
    return replace(
        report,
        started=tuple(replace(one, command=_key(one.command, keys)) for one in report.started),
        results=tuple(replace(one, command=_key(one.command, keys)) for one in report.results),
        output=tuple(replace(one, command=_key(one.command, keys)) for one in report.output),
    )


def _key(told_as: UUID, keys: Keys) -> UUID:
    return keys.get(told_as, told_as)


def _told(report: Report, now: datetime) -> dict[UUID, _Fire]:
    items: Iterable[Start | Result] = (*report.started, *report.results)
    return {
        item.command: _Fire(item.command, item.local, _fired_at(item, item.local, now))
        for item in items
        if item.local is not None
    }


def _fired_at(item: Start | Result, local: LocalFire, now: datetime) -> datetime:
    """When it fired: never after its start or its end, and never in the future."""
    ended = item.finished_at if isinstance(item, Result) else None
    moments = [local.nominal_at, item.started_at, ended, now]
    told = min(moment for moment in moments if moment is not None)
    return within_reason(told, now) or now


def _keys(agent_id: int, named: Iterable[UUID]) -> dict[UUID, UUID]:
    rows = Command.objects.filter(agent=agent_id, local_id__in=[str(one) for one in named])
    return {UUID(local): key for key, local in rows.values_list("pk", "local_id") if local}


def _write(agent_id: int, fires: Iterable[_Fire], now: datetime) -> None:
    revisions = _revisions([fire.local for fire in fires])
    slugs = {fire.local.schedule for fire in fires}
    # A PC says which schedule it was; that must be one that PCs fire, of the job that ran.
    found = Schedule.objects.filter(slug__in=slugs, runs_on_agent=True)
    schedules = {(row.slug, row.job_id): row for row in found}
    commands = []
    for fire in fires:
        local = fire.local
        revision = revisions.get((local.job, local.version, local.execute_sha256))
        if revision is None:
            logger.warning("a PC ran a job that is not known", extra={"job": local.job})
            continue
        schedule = schedules.get((local.schedule, revision.job_id))
        commands.append(_command(agent_id, fire, revision, schedule, now))
    # A repeated request may have been faster.
    Command.objects.bulk_create(commands, ignore_conflicts=True)


def _revisions(fires: Iterable[LocalFire]) -> dict[tuple[str, str, str], JobRevision]:
    """The newest revision of each job that runs what the agent says it ran."""
    found = JobRevision.objects.filter(
        job__slug__in={local.job for local in fires},
        execute_sha256__in={local.execute_sha256 for local in fires},
    ).select_related("job")
    return {
        (row.job.slug, row.version, row.execute_sha256): row for row in found.order_by("number")
    }


def _command(
    agent_id: int, fire: _Fire, revision: JobRevision, schedule: Schedule | None, now: datetime
) -> Command:
    timeout, retries = _longest_run(revision, schedule)
    return Command(
        agent_id=agent_id,
        job_id=revision.job_id,
        revision=revision,
        schedule_id=schedule.pk if schedule else None,
        # The agent has it; whether it started is said by the rest of the report.
        state=CommandState.HANDED_OUT.value,
        created_at=fire.at,
        handed_out_at=fire.at,
        deadline_at=now,
        reap_at=give_up_at(now, timeout, retries=retries),
        local_id=str(fire.told_as),
    )


def _longest_run(
    revision: JobRevision, schedule: Schedule | None
) -> tuple[timedelta | None, timedelta]:
    """One attempt's limit, and what its retries may take on top."""
    try:
        timeout = job_manifest(revision).execute.timeout
        retry: RetryPolicy | None = schedule_manifest(schedule).retry if schedule else None
    except ManifestError:
        return None, timedelta()
    return timeout, retry.budget(timeout) if retry else timedelta()
