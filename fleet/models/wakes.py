"""Calls to agents that wait, where the database cannot send notes by itself."""

from django.db import models


class Wake(models.Model):
    """One call. Written on SQLite alone, read by whoever lets agents wait, and soon deleted."""

    # Keys of agents with commas between them, or `*` for all.
    agents = models.TextField()

    def __str__(self) -> str:
        return self.agents[:40]
