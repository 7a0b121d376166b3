"""What the list and the page of schedules show, read in a fixed number of queries."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from fleet.admin.schedule_check import Forecast, forecast
from fleet.flow.activity import Ended, by_schedule, last_hours
from fleet.flow.manifests import schedule_manifest
from fleet.flow.tallies import Standing, standings_of
from fleet.models import Evaluation, Execution, Occurrence, Result, Schedule, ScheduleAgent
from fleet.rules.charts import Count
from fleet.rules.document_writer import dump_yaml
from fleet.rules.manifest import ManifestError, ScheduleManifest

MOST_EVALUATIONS = 15
MOST_OCCURRENCES = 10
MOST_EXECUTIONS = 10
MOST_FAILING = 25
MOST_RUNS = 40


@dataclass(frozen=True, slots=True)
class Row:
    """What a list says of one schedule; without a manifest the stored one cannot be read."""

    manifest: ScheduleManifest | None
    problem: str
    evaluation: Evaluation | None
    ended: Ended


@dataclass(frozen=True, slots=True)
class SchedulePage:
    """Everything about one schedule."""

    schedule: Schedule
    row: Row
    forecast: Forecast | None
    text: str
    hours: Sequence[Count]
    evaluations: Sequence[Evaluation]
    occurrences: Sequence[Occurrence]
    executions: Sequence[tuple[Execution, Standing]]
    failing: Sequence[ScheduleAgent]
    outcomes: Sequence[str]


def rows_of(schedules: Iterable[Schedule], *, now: datetime) -> Mapping[int, Row]:
    """What a list says of each schedule: one query, and the counts of the last day."""
    found = list(schedules)
    evaluations = {
        evaluation.schedule_id: evaluation
        for evaluation in Evaluation.objects.filter(until=None, schedule__in=found)
    }
    ended = by_schedule(last_hours(now))
    return {schedule.pk: _row(schedule, evaluations.get(schedule.pk), ended) for schedule in found}


def _row(
    schedule: Schedule, evaluation: Evaluation | None, ended: Mapping[int | None, Ended]
) -> Row:
    counts = ended.get(schedule.pk, Ended())
    try:
        return Row(schedule_manifest(schedule), "", evaluation, counts)
    except ManifestError as error:
        return Row(None, str(error), evaluation, counts)


def schedule_page(schedule: Schedule, *, now: datetime) -> SchedulePage:
    """Read the page."""
    row = rows_of([schedule], now=now)[schedule.pk]
    executions = list(
        schedule.executions.select_related("job", "revision")
        .defer("revision__manifest", "plan")
        .order_by("-id")[:MOST_EXECUTIONS]
    )
    standings = standings_of(executions)
    outcomes = Result.objects.filter(schedule_id=schedule.pk).order_by("-received_at")
    failing = schedule.schedule_agents.filter(failures__gt=0).select_related("agent")
    return SchedulePage(
        schedule=schedule,
        row=row,
        forecast=forecast(row.manifest, now=now) if row.manifest else None,
        text=dump_yaml([schedule.manifest]),
        hours=[_count(hour.starts_at, hour.by_schedule, schedule.pk) for hour in last_hours(now)],
        evaluations=list(schedule.evaluations.order_by("-since")[:MOST_EVALUATIONS]),
        occurrences=list(schedule.occurrences.order_by("-nominal_at")[:MOST_OCCURRENCES]),
        executions=[(execution, standings[execution.pk]) for execution in executions],
        failing=list(failing.defer("agent__facts").order_by("-failures", "pk")[:MOST_FAILING]),
        outcomes=list(outcomes.values_list("outcome", flat=True)[:MOST_RUNS])[::-1],
    )


def _count(hour: datetime, ended: Mapping[int | None, Ended], key: int) -> Count:
    found = ended.get(key, Ended())
    return Count(f"{timezone.localtime(hour):%H:%M}", found.ok, found.bad)
