"""The task: one unit of work, its timing, its lease, and what happened to it last."""

from collections.abc import Iterable
from datetime import datetime
from typing import Self

from django.db import connection, models
from django.db.models import CheckConstraint, F, Index, Q, QuerySet, UniqueConstraint

from scheduler.models.runners import Runner
from scheduler.rules.fire import MOST_RETRIES, Retry
from scheduler.rules.misfire import Misfire
from scheduler.rules.states import LIVE, TERMINAL, Phase, Reason, TaskState, phase_of
from scheduler.rules.timing import Recurrence

LOWEST_PRIORITY, HIGHEST_PRIORITY = -100, 100


def _in(states: Iterable[TaskState]) -> Q:
    return Q(state__in=sorted(state.value for state in states))


PENDING, RUNNING = Q(state=TaskState.PENDING.value), Q(state=TaskState.RUNNING.value)
IS_LIVE, HAS_ENDED = _in(LIVE), _in(TERMINAL)
WAITING = PENDING & Q(waits_for__gt=0)
NO_RETRY = Q(retry_times=None, retry_min=None, retry_max=None)


class TaskQuerySet(QuerySet["Task"]):
    """Questions about tasks."""

    def live(self) -> Self:
        """Those that are not over: their key is taken."""
        return self.filter(IS_LIVE)

    def of_key(self, kind: str, key: str) -> Self:
        """The live task of a key; there is at most one."""
        return self.live().filter(kind=kind, key=key)

    def held(self) -> Self:
        """Those under a lease: the body runs, or its hook has still to run."""
        return self.filter(RUNNING | Q(hook_run__isnull=False))

    def held_by(self, runner_id: int) -> Self:
        """Those under the lease of one runner."""
        return self.held().filter(runner_id=runner_id)

    def under(self, token: int) -> Self:
        """Those whose lease still has this token."""
        return self.filter(RUNNING, lease_token=token)

    def timed(self) -> Self:
        """Those with a due time that nobody has moved into the ready index yet."""
        return self.filter(PENDING, ready=False, hook_run=None, due_at__isnull=False)

    def ready_until(self, moment: datetime) -> Self:
        """Those that a runner may take, in the order in which they are taken."""
        return self.filter(ready=True, due_at__lte=moment).order_by("-priority", "due_at", "id")

    def in_phase(self, phase: Phase, now: datetime) -> Self:
        """Those of which `Task.phase` says this word."""
        later = Q(due_at__gt=now)
        match phase:
            case Phase.WAITING:
                return self.filter(WAITING)
            case Phase.DUE:
                return self.filter(Q(ready=True) | PENDING & Q(ready=False, due_at__lte=now))
            case Phase.RETRYING:
                return self.filter(PENDING & later, retry_count__gt=0)
            case Phase.SCHEDULED:
                return self.filter(PENDING & later, retry_count=0)
            case _:
                return self.filter(state=phase.value)

    def last_issued(self) -> int:
        """The highest id that was ever given to a task, pruned ones included."""
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute(
                    "SELECT last_value FROM pg_sequences WHERE schemaname = current_schema()"
                    " AND sequencename = 'scheduler_task_id_seq'"
                )
            else:
                cursor.execute("SELECT seq FROM sqlite_sequence WHERE name = 'scheduler_task'")
            row = cursor.fetchone()
        return int(row[0] or 0) if row else 0


class Task(models.Model):
    """A unit of work: kind, key and input. One row per key while it is live."""

    kind = models.CharField(max_length=200)
    key = models.CharField(max_length=500, null=True)  # noqa: DJ001  # an empty key is a key
    input = models.JSONField(null=True)
    state = models.CharField(max_length=11, default=TaskState.PENDING.value)
    reason = models.CharField(max_length=40, blank=True, default=Reason.NONE.value)
    queue = models.CharField(max_length=100, default="default")
    priority = models.SmallIntegerField(default=0)

    # When: `due_at` is empty while it waits for others; `ready` puts it into the small index that
    # runners poll, once it is due.
    due_at = models.DateTimeField(null=True)
    not_before = models.DateTimeField(null=True)
    ready = models.BooleanField(default=False)
    waits_for = models.PositiveIntegerField(default=0)

    # Recurrence: what code registered, and what staff typed instead.
    cron = models.CharField(max_length=512, null=True)  # noqa: DJ001  # no cron is no text
    cron_override = models.CharField(max_length=512, null=True)  # noqa: DJ001
    day_rule = models.CharField(max_length=3, default="or")
    tz = models.CharField(max_length=64, default="UTC")
    misfire = models.CharField(max_length=4, default=Misfire.ONCE.value)
    # The nominal time that its next run is for; with `extra`, a run in between comes first.
    occurrence_at = models.DateTimeField(null=True)
    extra = models.BooleanField(default=False)
    missed = models.PositiveIntegerField(default=0)

    # Retry policy in seconds, all three or none, and what is used up of it.
    retry_times = models.PositiveIntegerField(null=True)
    retry_min = models.PositiveIntegerField(null=True)
    retry_max = models.PositiveIntegerField(null=True)
    retry_count = models.PositiveIntegerField(default=0)
    attempt = models.PositiveIntegerField(default=0)

    # A request that came while the body ran.
    generation = models.BigIntegerField(default=0)
    replaced = models.BooleanField(default=False)
    next_input = models.JSONField(null=True)
    rerun = models.BooleanField(default=False)
    rerun_not_before = models.DateTimeField(null=True)
    dropped = models.PositiveIntegerField(default=0)
    cancelling = models.BooleanField(default=False)

    # The lease. `beat_at` is on the database's clock and judged on it alone.
    lease_token = models.BigIntegerField(default=0)
    beat = models.BigIntegerField(default=0)
    beat_at = models.DateTimeField(null=True)
    # Recovery reads the task alone, so a pruned runner row hides nothing.
    runner = models.ForeignKey(
        Runner, null=True, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False
    )
    started_at = models.DateTimeField(null=True)
    body_started = models.BooleanField(default=False)
    suspect = models.BooleanField(default=False)
    crash_count = models.PositiveSmallIntegerField(default=0)
    # The run whose hook has still to be called; until then it is not taken again.
    hook_run = models.BigIntegerField(null=True)

    runs = models.PositiveIntegerField(default=0)
    last_error = models.TextField(blank=True, default="")
    result = models.JSONField(null=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    objects = TaskQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        indexes = [
            Index(F("priority").desc(), F("due_at"), F("id"), condition=Q(ready=True),
                  name="tasks_ready"),
            Index(fields=["due_at"], name="tasks_timed",
                  condition=PENDING & Q(ready=False, hook_run=None, due_at__isnull=False)),
            Index(fields=["due_at"], condition=Q(ready=True, suspect=True), name="tasks_suspect"),
            Index(fields=["runner"], condition=RUNNING, name="tasks_running"),
            Index(fields=["hook_run"], condition=Q(hook_run__isnull=False),
                  name="tasks_hook_to_run"),
            Index(fields=["id"], condition=IS_LIVE, name="tasks_live"),
            Index(fields=["id"], condition=WAITING, name="tasks_waiting"),
            Index(fields=["id"], condition=Q(state=TaskState.QUARANTINED.value),
                  name="tasks_quarantined"),
            Index(fields=["id"], name="tasks_in_trouble",
                  condition=_in({TaskState.FAILED, TaskState.QUARANTINED})),
            Index(fields=["ended_at"], condition=HAS_ENDED, name="tasks_ended"),
        ]  # fmt: skip
        constraints = [
            UniqueConstraint(fields=["kind", "key"], condition=IS_LIVE,
                             name="one_live_task_per_key"),
            CheckConstraint(condition=_in(TaskState), name="task_state_is_known"),
            CheckConstraint(condition=Q(priority__range=(LOWEST_PRIORITY, HIGHEST_PRIORITY)),
                            name="task_priority_is_in_range"),
            CheckConstraint(condition=Q(misfire__in=[one.value for one in Misfire]),
                            name="task_misfire_is_known"),
            CheckConstraint(condition=Q(day_rule__in=["or", "and"]),
                            name="task_day_rule_is_known"),
            CheckConstraint(condition=~PENDING | Q(waits_for=0, due_at__isnull=False)
                            | Q(waits_for__gt=0, due_at=None),
                            name="pending_task_is_due_or_waits"),
            CheckConstraint(condition=Q(ready=False)
                            | PENDING & Q(due_at__isnull=False, hook_run=None),
                            name="ready_task_is_pending_and_due"),
            CheckConstraint(condition=~RUNNING | Q(runner__isnull=False, beat_at__isnull=False),
                            name="running_task_has_a_holder"),
            CheckConstraint(condition=HAS_ENDED & Q(ended_at__isnull=False)
                            | IS_LIVE & Q(ended_at=None),
                            name="ended_task_says_when"),
            CheckConstraint(condition=NO_RETRY | Q(retry_times__lte=MOST_RETRIES,
                            retry_min__isnull=False, retry_max__isnull=False),
                            name="retry_policy_is_whole"),
            CheckConstraint(condition=Q(cron=None, cron_override=None)
                            | Q(cron__isnull=False, key__isnull=False),
                            name="recurring_task_has_a_key"),
            CheckConstraint(condition=Q(replaced=False, cancelling=False) | RUNNING,
                            name="only_a_running_task_is_replaced_or_cancelling"),
        ]  # fmt: skip

    def __str__(self) -> str:
        """Name it for people."""
        return f"{self.kind} {self.key}" if self.key else self.kind

    @property
    def recurrence(self) -> Recurrence | None:
        """When it recurs; staff's cron before code's."""
        text = self.cron_override or self.cron
        return Recurrence(text, self.tz, self.day_rule) if text else None

    @property
    def retry(self) -> Retry | None:
        """Its retry policy, if it has one."""
        if self.retry_times is None or self.retry_min is None or self.retry_max is None:
            return None
        return Retry(self.retry_times, self.retry_min, self.retry_max)

    def phase(self, now: datetime) -> Phase:
        """Return the word for what it is doing."""
        return phase_of(
            TaskState(self.state), due_at=self.due_at, retry_count=self.retry_count, now=now
        )
