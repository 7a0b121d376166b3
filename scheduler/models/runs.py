"""The history: one row for each run that ended, written in the transaction that ends it."""

from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import Index, Q, QuerySet, UniqueConstraint

from scheduler.models.tasks import Task
from scheduler.rules.states import Outcome


class RunQuerySet(QuerySet["Run"]):
    """Questions about runs."""

    def failed_since(self, moment: datetime) -> Self:
        """Those that ended badly since then."""
        return self.filter(ended_at__gte=moment).exclude(outcome=Outcome.SUCCEEDED.value)


class Run(models.Model):
    """One run of a task. It is never changed; kind and key stay when the task is pruned."""

    task = models.ForeignKey(
        Task,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="history",
    )
    kind = models.CharField(max_length=200)
    key = models.CharField(max_length=500, null=True)  # noqa: DJ001  # as in the task
    input = models.JSONField(null=True)
    # Of the lease under which it ran; a second end of the same run cannot be written.
    lease_token = models.BigIntegerField()
    attempt = models.PositiveIntegerField()
    outcome = models.CharField(max_length=30)
    due_at = models.DateTimeField(null=True)
    occurrence_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField()
    runner_name = models.CharField(max_length=200, blank=True, default="")
    error = models.TextField(blank=True, default="")
    trace = models.TextField(blank=True, default="")
    result = models.JSONField(null=True)
    # Occurrences given up before this one, and whether a request was dropped by its failure.
    missed = models.PositiveIntegerField(default=0)
    dropped_request = models.BooleanField(default=False)
    hook_count = models.PositiveIntegerField(null=True)

    objects = RunQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        indexes = [
            Index(fields=["ended_at"], name="runs_by_end"),
            Index(
                fields=["ended_at"],
                condition=~Q(outcome=Outcome.SUCCEEDED.value),
                name="runs_in_trouble",
            ),
        ]
        constraints = [
            UniqueConstraint(fields=["task", "lease_token"], name="one_end_per_run"),
        ]

    def __str__(self) -> str:
        """Name it for people."""
        return f"{self.kind} attempt {self.attempt}: {self.outcome}"
