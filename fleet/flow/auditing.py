"""Compute what is cached anew, and tell what was wrong."""

from datetime import datetime

from fleet.flow.targets import RECONCILE, compute_targets
from fleet.models import Schedule
from scheduler.rules.contained import contained


def audit_targets(*, now: datetime) -> dict[str, int]:
    """Compute the rows of every enabled reconcile schedule; return what changed, by schedule."""
    schedules = Schedule.objects.filter(
        enabled=True, shape__in=RECONCILE, runs_on_agent=False, targets_dirty_at=None
    )
    changed: dict[str, int] = {}
    for key, slug in list(schedules.order_by("pk").values_list("pk", "slug")):
        with contained("targets audited", schedule=slug):
            count = compute_targets(key, now=now)
            if count:
                changed[slug] = count
    return changed
