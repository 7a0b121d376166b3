"""Which task waits for which."""

from collections.abc import Collection
from typing import Self

from django.db import connection, models
from django.db.models import CheckConstraint, F, Index, Q, QuerySet, UniqueConstraint

from scheduler.models.tasks import Task

# Any constant will do, as long as nobody else uses it.
GRAPH_LOCK = 0x6B616E61


class DependencyQuerySet(QuerySet["Dependency"]):
    """Questions about edges."""

    def waiting_for(self, task_ids: Collection[int]) -> Self:
        """The edges to tasks that just settled, locked so that nobody settles them twice."""
        return (
            self.filter(dependency_id__in=task_ids)
            .order_by("task_id", "dependency_id")
            .select_for_update()
        )

    def dependencies_of(self, task_ids: Collection[int]) -> set[int]:
        """The tasks that any of `task_ids` waits for."""
        return set(
            self.filter(task_id__in=task_ids).values_list("dependency_id", flat=True).distinct()
        )

    def lock_the_graph(self) -> None:
        """Let one transaction at a time add edges to tasks that others may wait for.

        Four requests can close a cycle of which none of them sees more than its own edge. SQLite
        has one writer anyway.
        """
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", [GRAPH_LOCK])


class Dependency(models.Model):
    """`task` waits for `dependency`. The edge is there as long as it waits."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="waits_on")
    # A task that others wait for cannot be deleted under them.
    dependency = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="waiters")
    require_success = models.BooleanField(default=False)

    objects = DependencyQuerySet.as_manager()

    class Meta:
        indexes = [Index(fields=["dependency", "task"], name="edges_by_dependency")]
        constraints = [
            UniqueConstraint(fields=["task", "dependency"], name="one_edge_per_pair"),
            CheckConstraint(condition=~Q(task=F("dependency")), name="no_task_waits_for_itself"),
        ]

    def __str__(self) -> str:
        """Name it for people."""
        return f"{self.task_id} waits for {self.dependency_id}"
