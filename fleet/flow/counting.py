"""How many agents of a schedule stop at which gate, counted by the database.

The conditions are those of `fleet.rules.firing.standing`, in the same order; a test compares the
two on random fleets.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import (
    Case,
    CharField,
    Count,
    Exists,
    Min,
    OuterRef,
    Q,
    QuerySet,
    Value,
    When,
)

from fleet.flow.rosters import has_open_command, is_alive
from fleet.models import JobAgent, Schedule, ScheduleAgent
from fleet.rules.cooldown import LEEWAY
from fleet.rules.failing import LONGEST_PAUSE, pause_after
from fleet.rules.firing import Reason
from fleet.rules.rearming import Terms
from fleet.rules.when import PerPc

STANDING = "standing"


@dataclass(frozen=True, slots=True)
class Counted:
    """Agents by the gate that stops them (`dispatched` = none does), and the next due time."""

    by_reason: Mapping[Reason, int]
    next_due_at: datetime | None

    @property
    def total(self) -> int:
        """All agents of the schedule."""
        return sum(self.by_reason.values())


def count_standings(
    schedule: Schedule, terms: Terms, *, now: datetime, heard_by: datetime | None = None
) -> Counted:
    """Count the agents of a per_pc schedule: one query over its rows."""
    rows = (
        with_standing(schedule, terms, now=now, heard_by=heard_by)
        .order_by()
        .values_list(STANDING)
        .annotate(agents=Count("pk"), due=Min("due_at", filter=Q(due_at__gt=now)))
    )
    found = [(Reason(reason), agents, due) for reason, agents, due in rows]
    dues = [due for _, _, due in found if due is not None]
    return Counted({reason: agents for reason, agents, _ in found}, min(dues, default=None))


def with_standing(
    schedule: Schedule, terms: Terms, *, now: datetime, heard_by: datetime | None = None
) -> QuerySet[ScheduleAgent]:
    """The schedule's rows, each with the `standing` of its agent: a Reason.

    `heard_by` is the moment at which agents are to be alive, if it is another one than `now`.
    """
    stops = [
        (Reason.NOBODY_ALIVE, ~is_alive(heard_by or now, "agent__")),
        (Reason.ALL_DONE, _is_done(schedule.job_id, terms, now)),
        (Reason.BACKING_OFF, _backs_off(terms, now)),
        (Reason.IN_FLIGHT, has_open_command(schedule.job_id, "agent")),
        (Reason.MUTED, _is_muted(terms.window, now)),
    ]
    standing = Case(
        *(When(condition, then=Value(reason.value)) for reason, condition in stops),
        default=Value(Reason.DISPATCHED.value),
        output_field=CharField(),
    )
    return ScheduleAgent.objects.filter(schedule=schedule).annotate(standing=standing)


def _is_done(job_id: int, terms: Terms, now: datetime) -> Exists:
    """Whether a success of the job still counts."""
    successes = JobAgent.objects.filter(
        job=job_id, agent=OuterRef("agent"), last_success_at__isnull=False
    )
    if isinstance(terms.when, PerPc) and terms.when.per_version:
        return Exists(successes.filter(last_success_version=terms.version))
    every = getattr(terms.when, "every", None)
    if every is None:
        return Exists(successes)
    if not every:
        return Exists(successes.none())
    believed = Q(last_success_at__gt=now - every, last_success_at__lte=now + LEEWAY)
    return Exists(successes.filter(believed))


def _backs_off(terms: Terms, now: datetime) -> Q:
    """Whether the pause after the last of its failures has not ended."""
    if not terms.backs_off:
        return Q(pk__in=[])
    condition, failures = Q(), 1
    while (pause := pause_after(failures, terms.window)) < max(LONGEST_PAUSE, terms.window):
        condition |= Q(failures=failures, last_failed_at__gt=now - pause)
        failures += 1
    return condition | Q(failures__gte=failures, last_failed_at__gt=now - pause)


def _is_muted(window: timedelta, now: datetime) -> Q:
    """Whether the last dispatch was so short a time ago."""
    return Q(last_dispatched_at__gt=now - window, last_dispatched_at__lte=now + LEEWAY)
