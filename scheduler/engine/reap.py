"""Free the leases of runners that are gone, and judge the tasks that were lost with them."""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models.functions import Now

from scheduler.engine import dependents, wakeup
from scheduler.engine.facts import interrupted_of
from scheduler.engine.hooks import wants_failed_hook
from scheduler.engine.runners import is_gone
from scheduler.models import Dependency, Run, Runner, Task
from scheduler.rules.interruptions import put_back
from scheduler.rules.leases import SILENCE, Lease, Loss, Watch, after_loss
from scheduler.rules.states import TERMINAL, Outcome, TaskState

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Reaper:
    """What one runner sees of the leases of all others."""

    runner_id: int
    watch: Watch = field(default_factory=Watch)

    def scan(self, *, at: float, now: datetime) -> list[int]:
        """Look once, at `at` seconds of this process's clock; return the tasks that were freed."""
        seen = self._leases()
        lost = {lease.task_id: lease for lease in self.watch.abandoned(seen, at=at)}
        gone = _gone(lease.runner_id for lease in seen)
        lost |= {lease.task_id: lease for lease in seen if lease.runner_id in gone}
        return free(list(lost.values()), now=now)

    def sweep(self, *, now: datetime) -> list[int]:
        """Judge by one look alone: the database's clock, and processes of this machine."""
        seen = self._leases()
        silent = set(
            Task.objects.held().filter(beat_at__lt=Now() - SILENCE).values_list("pk", flat=True)
        )
        gone = _gone(lease.runner_id for lease in seen)
        return free(
            [lease for lease in seen if lease.task_id in silent or lease.runner_id in gone],
            now=now,
        )

    def _leases(self) -> list[Lease]:
        held = Task.objects.held().filter(runner__isnull=False).exclude(runner_id=self.runner_id)
        rows = held.values_list("pk", "lease_token", "beat", "runner_id")
        return [Lease(pk, token, beat, runner_id or 0) for pk, token, beat, runner_id in rows]


def _gone(runner_ids: Iterable[int]) -> set[int]:
    wanted = set(runner_ids)
    if not wanted:
        return set()
    return {runner.pk for runner in Runner.objects.filter(pk__in=wanted) if is_gone(runner)}


def free(leases: Sequence[Lease], *, now: datetime) -> list[int]:
    """Take leases away; one that beat once more in the meantime is left alone."""
    started = Counter(
        Task.objects.filter(pk__in=[lease.task_id for lease in leases], body_started=True)
        .filter(state=TaskState.RUNNING.value)
        .values_list("runner_id", flat=True)
    )
    return [
        lease.task_id
        for lease in leases
        if _free_one(lease, only_one=started[lease.runner_id] == 1, now=now)
    ]


def _free_one(lease: Lease, *, only_one: bool, now: datetime) -> bool:
    with transaction.atomic():
        same = Task.objects.filter(
            pk=lease.task_id,
            lease_token=lease.token,
            beat=lease.beat,
            runner_id=lease.runner_id,
        )
        row = same.select_for_update().first()
        if row is None:
            return False
        if row.state != TaskState.RUNNING.value:
            # Only its hook has not run: anybody may call it now.
            return bool(row.hook_run is not None and same.update(runner=None))
        _lose(row, only_one=only_one, now=now)
        wakeup.announce_now()
    return True


def _lose(row: Task, *, only_one: bool, now: datetime) -> None:
    loss = after_loss(
        started=row.body_started,
        suspect=row.suspect,
        only_one=only_one,
        crash_count=row.crash_count,
    )
    changes = put_back(interrupted_of(row), pause=loss.pause, now=now)
    error = "the runner that held it is gone"
    quarantined = changes["state"] is TaskState.QUARANTINED
    hook = quarantined and wants_failed_hook(row.kind)
    run = Run.objects.create(**_crash(row, error, hook=hook, now=now)) if row.body_started else None
    columns: dict[str, object] = {
        **changes,
        "suspect": loss.suspect,
        "crash_count": loss.crash_count,
        "last_error": error if row.body_started else row.last_error,
        "runner": None,
        "hook_run": run.pk if hook and run is not None else None,
        "updated_at": now,
    }
    if not row.body_started:
        columns |= {"attempt": row.attempt - 1, "runs": row.runs - 1}
    _settle_if_over([row.pk], changes["state"], now=now, columns=columns)
    _tell(row, loss)


def _settle_if_over(
    task_ids: Collection[int], state: TaskState, *, now: datetime, columns: dict[str, object]
) -> None:
    Task.objects.filter(pk__in=task_ids).update(**columns)
    if state in TERMINAL:
        Dependency.objects.filter(task_id__in=task_ids).delete()
        dependents.settle(dict.fromkeys(task_ids, False), now=now)


def _crash(row: Task, error: str, *, hook: bool, now: datetime) -> dict[str, object]:
    return {
        "task_id": row.pk,
        "kind": row.kind,
        "key": row.key,
        "input": row.input,
        "lease_token": row.lease_token,
        "attempt": row.attempt,
        "outcome": Outcome.CRASHED.value,
        "due_at": row.due_at,
        "occurrence_at": None if row.extra else row.occurrence_at,
        "started_at": row.started_at,
        "ended_at": now,
        "error": error,
        "hook_count": row.retry_count if hook else None,
    }


def _tell(row: Task, loss: Loss) -> None:
    logger.warning(
        "lease freed",
        extra={
            "action": "lease freed",
            "task": row.pk,
            "kind": row.kind,
            "crashes": loss.crash_count,
            "quarantined": loss.pause is None,
        },
    )


def give_back(held: Iterable[tuple[int, int]], *, now: datetime) -> int:
    """Return tasks (id, token) whose body did not end or begin; the attempt does not count."""
    given = 0
    for task_id, token in held:
        with transaction.atomic():
            rows = Task.objects.filter(pk=task_id).under(token)
            row = rows.select_for_update().first()
            if row is None:
                continue
            changes = put_back(interrupted_of(row), pause=timedelta(0), now=now)
            columns: dict[str, object] = {**changes, "runner": None, "updated_at": now}
            columns |= {"attempt": row.attempt - 1, "runs": row.runs - 1}
            _settle_if_over([row.pk], changes["state"], now=now, columns=columns)
            given += 1
    if given:
        wakeup.announce_now()
    return given
