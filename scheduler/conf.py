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


@dataclass(frozen=True, slots=True)
class Broker:
    """Where messages to Celery's workers go: the broker, and the queue of Kanade's own workers."""

    url: str
    queue: str


def broker() -> Broker:
    """Return the broker in force; its URL is empty where none is set."""
    return Broker(
        url=str(getattr(settings, "CELERY_BROKER_URL", "") or ""),
        queue=str(getattr(settings, "KANADE_CELERY_QUEUE", "kanade")),
    )


def workers_are_celerys() -> bool:
    """Whether bodies run in Celery's workers, and a runner only wakes them."""
    return getattr(settings, "KANADE_ENGINE", "threads") == "celery"
