"""What the list and the page of schedules show, read in a fixed number of queries."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, OuterRef
from django.utils import timezone

from fleet.admin.schedule_check import Forecast, forecast
from fleet.flow.activity import Ended, Hour, by_schedule, last_hours
from fleet.flow.coverage import Coverage, coverages_of
from fleet.flow.manifests import schedule_manifest
from fleet.flow.tallies import Standing, standings_of
from fleet.models import Evaluation, Execution, Occurrence, Result, Schedule, ScheduleAgent
from fleet.rules.charts import Count, Part
from fleet.rules.document_writer import dump_yaml
from fleet.rules.manifest import ManifestError, ScheduleManifest

MOST_EVALUATIONS = 15
MOST_OCCURRENCES = 10
MOST_EXECUTIONS = 10
MOST_FAILING = 25
MOST_RUNS = 40
# A list adds up small targets alone; a large one is counted on its schedule's page.
MOST_COVERED_IN_A_LIST = 2_000


@dataclass(frozen=True, slots=True)
class Row:
    """What a list says of one schedule; without a manifest the stored one cannot be read."""

    manifest: ScheduleManifest | None
    problem: str
    evaluation: Evaluation | None
    ended: Ended
    # None for calendars, and for targets that are too large for a list.
    coverage: Coverage | None = None


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


def rows_of(
    schedules: Iterable[Schedule], *, now: datetime, covered: bool = False
) -> Mapping[int, Row]:
    """What a list says of each schedule, in a fixed number of queries."""
    found = list(schedules)
    evaluations = {
        evaluation.schedule_id: evaluation
        for evaluation in Evaluation.objects.filter(until=None, schedule__in=found)
    }
    ended = by_schedule(last_hours(now))
    coverages = _small_coverages(found) if covered else {}
    rows = {}
    for schedule in found:
        manifest, problem = _readable(schedule)
        rows[schedule.pk] = Row(
            manifest=manifest,
            problem=problem,
            evaluation=evaluations.get(schedule.pk),
            ended=ended.get(schedule.pk, Ended()),
            coverage=coverages.get(schedule.pk),
        )
    return rows


def _small_coverages(schedules: list[Schedule]) -> dict[int, Coverage]:
    """The coverage of small targets; a large one is found without counting it."""
    behind = ScheduleAgent.objects.filter(schedule=OuterRef("pk")).order_by()
    most = MOST_COVERED_IN_A_LIST
    large = set(
        Schedule.objects.filter(pk__in=[schedule.pk for schedule in schedules])
        .filter(Exists(behind[most : most + 1]))
        .values_list("pk", flat=True)
    )
    small = [schedule for schedule in schedules if schedule.pk not in large]
    return coverages_of(small, most=most)


def _readable(schedule: Schedule) -> tuple[ScheduleManifest | None, str]:
    try:
        return schedule_manifest(schedule), ""
    except ManifestError as error:
        return None, str(error)


def coverage_parts(coverage: Coverage) -> list[Part]:
    """M of N done, in the order in which a bar shows it."""
    return [
        Part("did it", coverage.ok, "ok"),
        Part("failed", coverage.fail, "bad"),
        Part("run it now", coverage.running, "run"),
        Part("not yet", coverage.pending, "idle"),
    ]


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
        hours=[_count(hour, schedule.pk) for hour in last_hours(now)],
        evaluations=list(schedule.evaluations.order_by("-since")[:MOST_EVALUATIONS]),
        occurrences=list(schedule.occurrences.order_by("-nominal_at")[:MOST_OCCURRENCES]),
        executions=[(execution, standings[execution.pk]) for execution in executions],
        failing=list(failing.defer("agent__facts").order_by("-failures", "pk")[:MOST_FAILING]),
        outcomes=list(outcomes.values_list("outcome", flat=True)[:MOST_RUNS])[::-1],
    )


def _count(hour: Hour, key: int) -> Count:
    ended = hour.of(key)
    return Count(f"{timezone.localtime(hour.starts_at):%H:%M}", ended.ok, ended.bad)
