"""A queue that somebody paused or limited. A queue without a row is neither."""

from django.db import models
from django.db.models import CheckConstraint, Q


class Queue(models.Model):
    """What is special about a queue."""

    name = models.CharField(max_length=100, unique=True)
    paused = models.BooleanField(default=False)
    # At most so many bodies of it run at once, on all runners together.
    most_running = models.PositiveIntegerField(null=True)
    # Counted up by each claim from a limited queue, so that two claims never overlap.
    claims = models.BigIntegerField(default=0)

    class Meta:
        ordering = ["name"]
        constraints = [
            CheckConstraint(
                condition=Q(most_running=None) | Q(most_running__gt=0),
                name="queue_limit_lets_something_run",
            )
        ]

    def __str__(self) -> str:
        """Name it for people."""
        return self.name
