"""How schedules are: when they run next, how their job last ran, and how the last day went."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Min, OuterRef, Subquery

from fleet.flow.manifests import local_zone, schedule_manifest
from fleet.models import Command, Evaluation, Job, Result, Schedule, ScheduleAgent, Shape
from fleet.rules.command_states import FAILURES, HELD, CommandState
from fleet.rules.manifest import ManifestError
from fleet.rules.preview import preview

DAY = timedelta(hours=24)
_HELD = [state.value for state in HELD]
_OK = CommandState.SUCCEEDED.value
_FAILED = [*(state.value for state in FAILURES), CommandState.OUTCOME_UNKNOWN.value]


@dataclass(frozen=True, slots=True)
class LastRun:
    """The latest run of a job; while it is running `outcome` and `ended_at` are None."""

    command_id: str
    outcome: str | None
    exit_code: int | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class Status:
    """How one schedule is."""

    # A calendar's next fire, a reconcile schedule's next due time; None = nothing to come.
    next_run: datetime | None = None
    last_run: LastRun | None = None
    # Runs of its job that ended within 24 h, whoever asked for them.
    ok: int = 0
    failed: int = 0
    evaluation: Evaluation | None = None


def status_of(schedules: Iterable[Schedule], *, now: datetime) -> dict[int, Status]:
    """The status of each schedule, by key: five queries for any number of them."""
    rows = list(schedules)
    keys = [row.pk for row in rows]
    jobs = {row.job_id for row in rows}
    ended, last = _ended(jobs, now), _last_runs(jobs)
    dues = dict(
        ScheduleAgent.objects.filter(schedule__in=keys, due_at__isnull=False)
        .values_list("schedule")
        .annotate(due=Min("due_at"))
    )
    standing = {
        one.schedule_id: one for one in Evaluation.objects.filter(schedule__in=keys, until=None)
    }
    return {
        row.pk: Status(
            next_run=_next_run(row, dues.get(row.pk), now),
            last_run=last.get(row.job_id),
            ok=ended.get((row.job_id, True), 0),
            failed=ended.get((row.job_id, False), 0),
            evaluation=standing.get(row.pk),
        )
        for row in rows
    }


def _next_run(schedule: Schedule, due: datetime | None, now: datetime) -> datetime | None:
    if not schedule.enabled or schedule.runs_on_agent:
        return None
    if schedule.shape != Shape.CALENDAR:
        return max(due, now) if due is not None else None
    try:
        manifest = schedule_manifest(schedule)
    except ManifestError:
        return None
    return next(iter(preview(manifest, now=now, count=1, local=local_zone())), None)


def _ended(jobs: Iterable[int], now: datetime) -> Mapping[tuple[int, bool], int]:
    """Runs of the last 24 h by (job, whether they ended well)."""
    rows = (
        Result.objects.filter(
            job_id__in=list(jobs), received_at__gte=now - DAY, outcome__in=[_OK, *_FAILED]
        )
        .order_by()
        .values_list("job_id", "outcome")
        .annotate(runs=Count("pk"))
    )
    counts: dict[tuple[int, bool], int] = {}
    for job_id, outcome, runs in rows:
        key = (job_id, outcome == _OK)
        counts[key] = counts.get(key, 0) + runs
    return counts


def _last_runs(jobs: Iterable[int]) -> dict[int, LastRun]:
    """What runs now, else the newest result, of each job."""
    running = Command.objects.filter(job=OuterRef("pk"), state__in=_HELD).order_by("-pk")
    results = Result.objects.filter(job_id=OuterRef("pk")).order_by("-command_id")
    found = Job.everything.filter(pk__in=list(jobs)).values_list(
        "pk",
        Subquery(running.values("pk")[:1]),
        Subquery(results.values("command_id")[:1]),
        Subquery(results.values("outcome")[:1]),
        Subquery(results.values("exit_code")[:1]),
        Subquery(results.values("received_at")[:1]),
    )
    last = {}
    for job, runs, newest, outcome, exit_code, ended in found:
        if runs is not None and (newest is None or runs > newest):
            last[job] = LastRun(str(runs), None, None, None)
        elif newest is not None:
            last[job] = LastRun(str(newest), outcome, exit_code, ended)
    return last
