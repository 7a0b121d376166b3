"""Rows for the bench of the tick, and the bare way to write the same commands."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from fleet.flow.publish import publish_schedule
from fleet.flow.targets import compute_targets
from fleet.flow.tick import tick
from fleet.models import Command, Execution, JobRevision, Result, Schedule, ScheduleAgent, new_id
from fleet.rules.command_states import CommandState
from fleet.rules.manifest import parse_schedule
from scheduler.management.benches.running import empty

_DAY = timedelta(days=1)
_BATCH = 5_000


def add_schedule(
    job: JobRevision, number: int, *, with_agents: bool = True, max_concurrent: int | None = None
) -> Schedule:
    """Add a schedule that wants the job on each agent every hour, its rows computed."""
    document: dict[str, object] = {
        "id": f"bench-{number}",
        "job_id": job.job.slug,
        "when": {"per_pc": {"every": "1h"}},
        "target": {"all": True} if with_agents else {"pcs": ["bench-0"]},
    }
    if max_concurrent is not None:
        document["constraints"] = {"max_concurrent": max_concurrent}
    now = timezone.now()
    with transaction.atomic():
        published = publish_schedule(parse_schedule(document), job.job, set_name="", now=now)
    compute_targets(published.row.pk, now=now)
    # What was asked of the runner is done here.
    empty()
    return Schedule.objects.get(pk=published.row.pk)


def settle_down(schedule: Schedule) -> None:
    """Let nobody be due, and let the tick find that out."""
    ScheduleAgent.objects.filter(schedule=schedule).update(due_at=timezone.now() + _DAY)
    tick(now=timezone.now())


def set_due(schedule: Schedule, agents: Iterable[int]) -> None:
    """Let these agents be due and no others."""
    now = timezone.now()
    rows = ScheduleAgent.objects.filter(schedule=schedule)
    rows.update(due_at=None, last_dispatched_at=None)
    wanted = list(agents)
    for start in range(0, len(wanted), _BATCH):
        rows.filter(agent__in=wanted[start : start + _BATCH]).update(due_at=now)
    Schedule.objects.filter(pk=schedule.pk).update(held=False, look_at=None)


def forget_fires(schedule: Schedule) -> None:
    """Take back what the schedule fired, and what the bare way wrote."""
    Command.objects.filter(reconciles=True).delete()
    Execution.objects.filter(schedule=schedule).delete()
    Execution.objects.filter(actor="raw").delete()
    empty()
    vacuum()


def vacuum() -> None:
    """Let neither side pay for the rows that were deleted."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE fleet_command, fleet_scheduleagent, fleet_execution")


def add_history(job: JobRevision, agents: list[int], count: int) -> None:
    """Add old results of the job."""
    now = timezone.now() - _DAY
    for start in range(0, count, _BATCH):
        Result.objects.bulk_create(
            Result(
                command_id=new_id(),
                agent_id=agents[number % len(agents)],
                job_id=job.job_id,
                job_version=job.version,
                revision_id=job.pk,
                outcome=CommandState.SUCCEEDED.value,
                exit_code=0,
                received_at=now,
            )
            for number in range(start, min(start + _BATCH, count))
        )


class RawCommands:
    """The same rows by COPY (PostgreSQL) or executemany (SQLite), and nothing else."""

    def __init__(self, job: JobRevision, agents: list[int]) -> None:
        self._job, self._agents = job, agents
        self._fields = Command._meta.concrete_fields  # noqa: SLF001  # Django documents it

    def write(self) -> None:
        """Write one command for each agent in one transaction."""
        now = timezone.now()
        execution = Execution.objects.create(
            job_id=self._job.job_id,
            revision=self._job,
            origin="manual",
            state="live",
            actor="raw",
            created_at=now,
            deadline_at=now + _DAY,
        )
        rows = [self._row(execution, agent) for agent in self._agents]
        columns = ", ".join(str(field.column) for field in self._fields)
        with transaction.atomic(), connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                with cursor.copy(f"COPY fleet_command ({columns}) FROM STDIN") as copy:
                    for row in rows:
                        copy.write_row(row)
            else:
                marks = ", ".join(["%s"] * len(self._fields))
                statement = f"INSERT INTO fleet_command ({columns}) VALUES ({marks})"
                cursor.executemany(statement, rows)

    def _row(self, execution: Execution, agent: int) -> list[Any]:
        command = Command(
            execution=execution,
            agent_id=agent,
            job_id=execution.job_id,
            revision_id=execution.revision_id,
            state=CommandState.QUEUED.value,
            reconciles=True,
            created_at=execution.created_at,
            deadline_at=execution.deadline_at,
        )
        return [
            field.get_db_prep_save(getattr(command, field.attname), connection)
            for field in self._fields
        ]
