"""Keep why schedules fired or not: what is in force, and every change of reason."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from fleet.models import Evaluation
from fleet.rules.firing import Reason

LONGEST_DETAIL = 1000


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one evaluation of a schedule came to."""

    reason: Reason
    detail: str = ""
    opens_at: datetime | None = None
    counts: Mapping[str, int] | None = None

    @property
    def columns(self) -> dict[str, object]:
        """The values beside the reason, as stored."""
        return {
            "detail": self.detail[:LONGEST_DETAIL],
            "opens_at": self.opens_at,
            "counts": dict(self.counts or {}),
        }


def record(schedule_id: int, verdict: Verdict, *, now: datetime) -> bool:
    """Put the verdict in force; return whether the reason changed.

    The same reason goes on since it began, with today's values; another one ends it.
    """
    standing = Evaluation.objects.filter(schedule=schedule_id, until=None).first()
    if standing is not None and standing.reason == verdict.reason:
        columns = verdict.columns
        if any(getattr(standing, name) != value for name, value in columns.items()):
            Evaluation.objects.filter(pk=standing.pk).update(**columns)
        return False
    # A look that began earlier and ended later follows the one in force, and never precedes it.
    record_for([schedule_id], verdict, now=max(now, standing.since) if standing else now)
    return True


def record_for(schedules: Collection[int], verdict: Verdict, *, now: datetime) -> None:
    """Put one verdict in force for many schedules that had another: two queries."""
    Evaluation.objects.filter(schedule__in=schedules, until=None).update(until=now)
    # Somebody else may have evaluated one of them meanwhile: then theirs stays in force.
    Evaluation.objects.bulk_create(
        (
            Evaluation(
                schedule_id=schedule, since=now, reason=verdict.reason.value, **verdict.columns
            )
            for schedule in schedules
        ),
        ignore_conflicts=True,
    )
