"""The fleet's configuration, from Django's settings."""

from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings


@dataclass(frozen=True, slots=True)
class Retention:
    """How long what is over is kept."""

    results: timedelta
    output: timedelta
    evaluations: timedelta
    occurrences: timedelta


def retention() -> Retention:
    """Return the retention in force: days, by setting."""
    return Retention(
        results=_days("KANADE_RESULT_RETENTION_DAYS", 90),
        output=_days("KANADE_OUTPUT_RETENTION_DAYS", 30),
        evaluations=_days("KANADE_EVALUATION_RETENTION_DAYS", 90),
        occurrences=_days("KANADE_OCCURRENCE_RETENTION_DAYS", 400),
    )


def _days(setting: str, default: int) -> timedelta:
    return timedelta(days=int(getattr(settings, setting, default)))
