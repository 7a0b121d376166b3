"""Delete what is over and old enough, in small batches that hold no lock for long."""

from collections.abc import Callable
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Now

from scheduler.conf import retention
from scheduler.models import AuditEntry, Dependency, Run, Runner, Task
from scheduler.registry import REGISTRY, Declared, Kind, Pruner
from scheduler.rules.fire import NOTHING, Fire

BATCH = 1000
# A runner that said nothing for this long is not coming back.
RUNNER_SILENCE = timedelta(days=7)


def prune(*, now: datetime, tell: Callable[[str, int], None] | None = None) -> int:
    """Apply all retentions; return how many rows are gone. `tell` hears of each part."""
    total = 0
    for name, part in {**_PARTS, **REGISTRY.pruners}.items():
        count = part(now)
        if tell is not None:
            tell(name, count)
        total += count
    return total


def prune_tasks(now: datetime) -> int:
    """Delete tasks that ended long ago and that nobody waits for."""
    old = Task.objects.filter(ended_at__lt=now - retention().tasks, hook_run=None)
    waited_for = Dependency.objects.filter(dependency=OuterRef("pk"))
    return _in_batches(old.filter(~Exists(waited_for)).order_by("ended_at"))


def prune_runs(now: datetime) -> int:
    """Delete old history; a run whose hook has not been called stays."""
    unfinished = Task.objects.filter(hook_run=OuterRef("pk"))
    old = Run.objects.filter(~Exists(unfinished), ended_at__lt=now - retention().runs)
    return _in_batches(old.order_by("ended_at"))


def prune_audit(now: datetime) -> int:
    """Delete old audit entries."""
    return _in_batches(AuditEntry.objects.filter(at__lt=now - retention().audit).order_by("at"))


def prune_runners(now: datetime) -> int:  # noqa: ARG001  # its times are the database's own
    """Delete runners that are silent for long and hold nothing."""
    holding = Task.objects.held().filter(runner=OuterRef("pk"))
    old = Runner.objects.filter(~Exists(holding), last_tick_at__lt=Now() - RUNNER_SILENCE)
    return _in_batches(old.order_by("pk"))


_PARTS: dict[str, Pruner] = {
    "tasks": prune_tasks,
    "runs": prune_runs,
    "audit": prune_audit,
    "runners": prune_runners,
}


def _in_batches(rows: "QuerySet[Any]") -> int:
    total = 0
    while True:
        ids = list(rows.values_list("pk", flat=True)[:BATCH])
        if not ids:
            return total
        # Asked again with the conditions: a row may have come to life since.
        gone = rows.order_by().filter(pk__in=ids)
        total += gone._raw_delete(gone.db)  # noqa: SLF001  # delete() forgets the conditions
        if len(ids) < BATCH:
            return total


def body(fire: Fire) -> object:
    """Run as a task: say how much went, or nothing at all."""
    count = prune(now=fire.now)
    return {"deleted": count} if count else NOTHING


def register() -> None:
    """Have retention applied each night."""
    REGISTRY.add(Kind("scheduler.prune", body))
    options: dict[str, object] = {"cron": "20 4 * * *", "queue": None}
    REGISTRY.declare(Declared("scheduler.prune", "scheduler.prune", MappingProxyType(options)))
