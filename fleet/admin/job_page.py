"""What the page of one job shows."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from fleet.flow.tallies import Standing, standings_of
from fleet.models import Execution, Job, JobRevision, Result, Schedule
from fleet.rules.document_writer import dump_yaml

MOST_REVISIONS = 20
MOST_SCHEDULES = 50
MOST_EXECUTIONS = 10
MOST_RUNS = 40
MOST_LINES = 400


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of a comparison; `kind` is added, removed or same."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class JobPage:
    """Everything about one job. `current` runs; `latest` is what people edit."""

    job: Job
    current: JobRevision | None
    latest: JobRevision | None
    text: str
    waiting_change: Sequence[DiffLine]
    revisions: Sequence[JobRevision]
    schedules: Sequence[Schedule]
    executions: Sequence[tuple[Execution, Standing]]
    outcomes: Sequence[str]

    @property
    def awaits_approval(self) -> bool:
        """Whether the newest content waits for a second person."""
        return awaits_approval(self.job)


def awaits_approval(job: Job) -> bool:
    """Whether the newest revision may not run yet."""
    return job.latest_id is not None and job.latest_id != job.current_id


def job_page(job: Job) -> JobPage:
    """Read the page."""
    executions = list(
        job.executions.select_related("job", "revision")
        .defer("revision__manifest", "plan")
        .order_by("-id")[:MOST_EXECUTIONS]
    )
    standings = standings_of(executions)
    outcomes = Result.objects.filter(job_id=job.pk).order_by("-command_id")
    shown = job.current or job.latest
    return JobPage(
        job=job,
        current=job.current,
        latest=job.latest,
        text=dump_yaml([shown.manifest]) if shown else "",
        waiting_change=difference(job.current, job.latest) if awaits_approval(job) else (),
        revisions=list(job.revisions.defer("manifest").order_by("-number")[:MOST_REVISIONS]),
        schedules=list(job.schedules.defer("manifest").order_by("slug")[:MOST_SCHEDULES]),
        executions=[(execution, standings[execution.pk]) for execution in executions],
        outcomes=list(outcomes.values_list("outcome", flat=True)[:MOST_RUNS])[::-1],
    )


def difference(old: JobRevision | None, new: JobRevision | None) -> list[DiffLine]:
    """What changes from one revision to another, line by line."""
    before = dump_yaml([old.manifest]).splitlines() if old else []
    after = dump_yaml([new.manifest]).splitlines() if new else []
    lines = difflib.unified_diff(before, after, lineterm="", n=3)
    kinds = {"+": "added", "-": "removed"}
    # The first two lines name files, and there are none.
    body = [line for index, line in enumerate(lines) if index > 1]
    return [DiffLine(kinds.get(line[:1], "same"), line) for line in body[:MOST_LINES]]
