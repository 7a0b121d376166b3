"""What the page of one task shows: how it stands, when it recurs, what it waits for, its runs."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from scheduler.engine.facts import standing_of
from scheduler.models import Dependency, Run, Task
from scheduler.rules.forecasts import Forecast, forecast
from scheduler.rules.looks import Look, look_of
from scheduler.rules.standing import words
from scheduler.rules.texts import clean_text

MOST_RUNS = 20
MOST_EDGES = 20
SHOWN_JSON = 8_000
SHOWN_TRACE = 20_000


@dataclass(frozen=True, slots=True)
class Fire:
    """A coming run on the clock of the task's zone, and in UTC."""

    in_zone: str
    in_utc: str


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run as a table shows it."""

    run: Run
    look: Look


@dataclass(frozen=True, slots=True)
class TaskPage:
    """Everything about one task at one moment."""

    task: Task
    words: str
    look: Look
    forecast: Forecast | None
    fires: Sequence[Fire]
    waits_for: Sequence[Task]
    needed_by: Sequence[Task]
    runs: Sequence[RunRow]
    input: str
    result: str
    last_error: str


def task_page(task: Task, *, now: datetime) -> TaskPage:
    """Read what the page shows, in a fixed number of queries."""
    seen = forecast(task.recurrence, now=now) if task.recurrence else None
    return TaskPage(
        task=task,
        words=words(standing_of(task), now=now),
        look=look_of(task.phase(now)),
        forecast=seen,
        fires=fires_of(seen) if seen else [],
        waits_for=_tasks(Dependency.objects.filter(task=task).values("dependency_id")),
        needed_by=_tasks(Dependency.objects.filter(dependency=task).values("task_id")),
        runs=[RunRow(run, look_of(run.outcome)) for run in runs_of(task.pk)],
        input=json_text(task.input),
        result=json_text(task.result),
        last_error=clean_text(task.last_error, most=SHOWN_TRACE),
    )


def fires_of(seen: Forecast) -> list[Fire]:
    """The next fires as people read them."""
    form = "%a %Y-%m-%d %H:%M"
    return [
        Fire(
            in_zone=fire.astimezone(seen.zone).strftime(f"{form} %Z"),
            in_utc=fire.astimezone(UTC).strftime(f"{form} UTC"),
        )
        for fire in seen.fires
    ]


def runs_of(task_id: int) -> list[Run]:
    """The last runs of a task, the newest first, along its own index."""
    rows = Run.objects.filter(task_id=task_id).order_by("-lease_token")
    return list(rows.defer("input", "result", "trace")[:MOST_RUNS])


def json_text(value: object) -> str:
    """A stored value for a page: indented, cut, with nothing in it that moves other text."""
    if value is None:
        return ""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    shown = clean_text(text, most=SHOWN_JSON)
    return shown if len(text) <= SHOWN_JSON else f"{shown}\n… {len(text)} characters in all"


def _tasks(ids: object) -> list[Task]:
    columns = ("kind", "key", "state", "due_at", "retry_count", "waits_for")
    return list(Task.objects.filter(pk__in=ids).only(*columns).order_by("pk")[:MOST_EDGES])  # type: ignore[misc]  # a query of ids
