"""What there is to see of the queue, in bounded queries whatever is in the tables."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, F, OuterRef, Subquery
from django.db.models.functions import Coalesce, Now

from scheduler.models import Dependency, Queue, Run, Runner, Task
from scheduler.models.snapshots import oldest_due, tally
from scheduler.models.tasks import PENDING, RUNNING, WAITING
from scheduler.registry import REGISTRY
from scheduler.rules.graph import cycles
from scheduler.rules.health import HUNG_AFTER, Held, Quarantined, SeenRunner, TaskName, Wait
from scheduler.rules.leases import SILENCE
from scheduler.rules.states import TERMINAL, TaskState

MOST_COUNTED = 10_000
MOST_LISTED = 20
MOST_RUNNERS = 50
MOST_QUEUES = 50
MOST_HELD = 1_000
# The oldest edges and waiting tasks: what is stuck stays, so it is among them.
MOST_EDGES = 2_000
MOST_CYCLES = 5
DAY = timedelta(days=1)

OF_TASK = ("task_id", "task__kind", "task__key")
OF_DEPENDENCY = ("dependency_id", "dependency__kind", "dependency__key", "dependency__state")


@dataclass(frozen=True, slots=True)
class Counts:
    """Live tasks by state and kind, and failed runs; nothing is counted beyond MOST_COUNTED."""

    by_kind: Mapping[str, Mapping[str, int]]
    totals: Mapping[str, int]
    capped: Sequence[str]


@dataclass(frozen=True, slots=True)
class Edges:
    """What the oldest edges say."""

    waits: Sequence[Wait]
    missing: Sequence[Wait]
    cycles: Sequence[tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Leases:
    """What the tasks under a lease say."""

    expired: Sequence[Held]
    hung: Sequence[Held]


def count(now: datetime) -> Counts:
    """Count live tasks by what they do, and the runs of a day that ended badly."""
    found = tally(
        {
            "waiting": Task.objects.filter(WAITING),
            "due": Task.objects.filter(ready=True),
            "overdue": Task.objects.timed().filter(due_at__lte=now),
            "later": Task.objects.timed().filter(due_at__gt=now),
            "hook": Task.objects.filter(PENDING, hook_run__isnull=False, waits_for=0),
            "running": Task.objects.filter(RUNNING),
            "quarantined": Task.objects.filter(state=TaskState.QUARANTINED.value),
            "failed": Run.objects.failed_since(now - DAY),
        },
        most=MOST_COUNTED + 1,
    )
    _merge(found, "overdue", into="due")
    _merge(found, "hook", into="due")
    totals = {name: sum(kinds.values()) for name, kinds in found.items()}
    dependents = Dependency.objects.order_by().values("dependency_id").distinct()
    totals["dependents"] = dependents[: MOST_COUNTED + 1].count()
    return Counts(
        by_kind=found,
        totals={name: min(total, MOST_COUNTED) for name, total in totals.items()},
        capped=sorted(name for name, total in totals.items() if total > MOST_COUNTED),
    )


def _merge(found: dict[str, dict[str, int]], part: str, *, into: str) -> None:
    for kind, more in found.pop(part).items():
        found[into][kind] = found[into].get(kind, 0) + more


def paused_queues() -> list[str]:
    """Return the names of the queues that nothing is taken from."""
    return list(Queue.objects.filter(paused=True).values_list("name", flat=True)[:MOST_QUEUES])


def oldest_due_age(paused: Collection[str], *, now: datetime) -> float | None:
    """Return for how many seconds the oldest task has been due that should have been taken."""
    first = oldest_due(now, kinds=sorted(REGISTRY.kinds), except_queues=paused)
    return None if first is None else (now - first).total_seconds()


def runners() -> list[SeenRunner]:
    """Return the runners of the last day that have not signed off, the last heard of first."""
    rows = Runner.objects.filter(stopped_at=None, last_tick_at__gte=Now() - DAY)
    rows = rows.annotate(database_now=Now()).order_by("-last_tick_at")[:MOST_RUNNERS]
    return [
        SeenRunner(
            id=row.pk,
            name=row.name,
            host=row.host,
            workers=row.workers,
            queues=row.queues,
            started_at=row.started_at,
            last_tick_at=row.last_tick_at,
            silent_s=max(0.0, row.silent_for(row.database_now)),
        )
        for row in rows
    ]


def leases(now: datetime) -> Leases:
    """Return the leases that nobody keeps, on the database's clock, and bodies that never end."""
    rows = Task.objects.held().filter(runner__isnull=False).annotate(database_now=Now())
    held = [
        _held(row, now) for row in rows.select_related("runner").order_by("beat_at")[:MOST_HELD]
    ]
    hung = [one for one in held if one.in_body and one.running_s > HUNG_AFTER.total_seconds()]
    return Leases(
        expired=[one for one in held if one.silent_s > SILENCE.total_seconds()],
        hung=sorted(hung, key=lambda one: -one.running_s),
    )


def _held(row: Task, now: datetime) -> Held:
    database_now: datetime = row.database_now  # type: ignore[attr-defined]  # annotated
    silent = (database_now - row.beat_at).total_seconds() if row.beat_at else 0.0
    running = (now - row.started_at).total_seconds() if row.started_at else 0.0
    in_body = row.state == TaskState.RUNNING.value and row.body_started
    return Held(
        task=TaskName(row.pk, row.kind, row.key),
        runner=row.runner.name if row.runner else "",
        running_s=max(0.0, running),
        silent_s=max(0.0, silent),
        in_body=in_body,
    )


def quarantined() -> list[Quarantined]:
    """Return the tasks that were quarantined last."""
    rows = Task.objects.filter(state=TaskState.QUARANTINED.value).order_by("-updated_at")
    return [
        Quarantined(TaskName(row.pk, row.kind, row.key), row.reason, row.last_error[:500])
        for row in rows[:MOST_LISTED]
    ]


def stuck() -> list[TaskName]:
    """Return tasks that wait for more than they have edges for: nothing will ever free them."""
    oldest = Task.objects.filter(WAITING).order_by("pk").values("pk")[:MOST_COUNTED]
    edges = Dependency.objects.filter(task_id=OuterRef("pk")).order_by().values("task_id")
    counted = Coalesce(Subquery(edges.annotate(count=Count("pk")).values("count")), 0)
    rows = Task.objects.filter(WAITING, pk__in=oldest).annotate(edges=counted)
    found = rows.filter(waits_for__gt=F("edges")).order_by("pk")
    return [TaskName(*row) for row in found.values_list("pk", "kind", "key")[:MOST_LISTED]]


def edges() -> Edges:
    """Return who waits for whom: some edges, those to what is over, and the circles."""
    rows = Dependency.objects.order_by("pk").values_list(*OF_TASK, *OF_DEPENDENCY)[:MOST_EDGES]
    waits = [Wait(TaskName(*row[:3]), TaskName(*row[3:6]), row[6]) for row in rows]
    return Edges(
        waits=waits[:MOST_LISTED],
        missing=[one for one in waits if one.dependency_state in TERMINAL][:MOST_LISTED],
        cycles=cycles(((one.task.id, one.dependency.id) for one in waits), most=MOST_CYCLES),
    )
