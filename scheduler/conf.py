"""The scheduler's configuration, from Django's settings."""

from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings


@dataclass(frozen=True, slots=True)
class Retention:
    """How long what is over is kept."""

    tasks: timedelta
    runs: timedelta
    audit: timedelta


def retention() -> Retention:
    """Return the retention in force: days, by setting."""
    return Retention(
        tasks=timedelta(days=int(getattr(settings, "KANADE_TASK_RETENTION_DAYS", 30))),
        runs=timedelta(days=int(getattr(settings, "KANADE_RUN_RETENTION_DAYS", 30))),
        audit=timedelta(days=int(getattr(settings, "KANADE_AUDIT_RETENTION_DAYS", 365))),
    )
