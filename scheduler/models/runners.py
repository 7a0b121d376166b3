"""A runner: one process of `runscheduler`."""

from datetime import datetime

from django.db import models
from django.db.models.functions import Now


class Runner(models.Model):
    """One process that takes tasks, by what identifies it on its machine.

    All its times are on the database's clock.
    """

    name = models.CharField(max_length=200)
    host = models.CharField(max_length=255)
    # Together they name a process for ever: machine start, process namespace, pid, start tick.
    boot_id = models.CharField(max_length=64, blank=True, default="")
    pid_namespace = models.CharField(max_length=64, blank=True, default="")
    pid = models.PositiveIntegerField()
    start_tick = models.BigIntegerField(default=0)
    workers = models.PositiveIntegerField(default=1)
    queues = models.JSONField(null=True)
    started_at = models.DateTimeField(db_default=Now())
    last_tick_at = models.DateTimeField(db_default=Now())
    stopped_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(
                fields=["last_tick_at"],
                condition=models.Q(stopped_at=None),
                name="runners_not_stopped",
            )
        ]

    def __str__(self) -> str:
        """Name it for people."""
        return f"{self.name} ({self.host}, pid {self.pid})"

    def silent_for(self, database_now: datetime) -> float:
        """Return the seconds since it was last heard of."""
        return (database_now - self.last_tick_at).total_seconds()
