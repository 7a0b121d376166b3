"""How the fleet is, for the front page: read in a fixed number of queries."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Case, CharField, Count, F, Q, Value, When

from fleet.flow.activity import Ended, Hour, by_schedule, last_hours
from fleet.flow.freeze import known_freeze
from fleet.models import Agent, AgentState, Evaluation, Execution, Schedule, TickMark
from fleet.rules.execution_states import OPEN_EXECUTIONS, ExecutionState
from fleet.rules.firing import Reason
from fleet.rules.freeze import FreezeState
from fleet.rules.liveness import ALIVE_FOR
from fleet.rules.presence import STALE_FOR, Presence

MOST_TROUBLED = 10
MOST_EXECUTIONS = 8
# Every minute there is a tick; two missed ones are worth a word.
SILENT_AFTER = timedelta(minutes=3)
LATE_AFTER = timedelta(minutes=5)
# Reasons that end by themselves are none of them.
TROUBLES = frozenset(
    {
        Reason.JOB_MISSING,
        Reason.JOB_REVOKED,
        Reason.NOT_APPROVED,
        Reason.BAD_DEADLINE,
        Reason.NO_TARGET,
        Reason.ERROR,
    }
)


@dataclass(frozen=True, slots=True)
class Trouble:
    """A schedule that needs a look: what it says, and how its runs of the last day ended."""

    schedule: Schedule
    reason: str
    detail: str
    ended: Ended


@dataclass(frozen=True, slots=True)
class Overview:
    """Everything that the front page knows about the fleet at one moment."""

    now: datetime
    freeze: FreezeState
    pcs: dict[str, int]
    hours: Sequence[Hour]
    troubles: Sequence[Trouble]
    schedules: int
    executions: Sequence[Execution]
    awaiting_approval: int
    last_tick_at: datetime | None

    @property
    def is_ticking(self) -> bool:
        """Whether somebody looks at the schedules."""
        return self.last_tick_at is not None and self.now - self.last_tick_at < SILENT_AFTER

    @property
    def ended(self) -> Ended:
        """How the runs of the last day ended."""
        return sum((hour.ended for hour in self.hours), Ended())


def overview(now: datetime) -> Overview:
    """Read the front page."""
    hours = last_hours(now)
    in_progress = Execution.objects.filter(state__in=[state.value for state in OPEN_EXECUTIONS])
    mark = TickMark.objects.first()
    return Overview(
        now=now,
        freeze=known_freeze(now),
        pcs=_pcs(now),
        hours=hours,
        troubles=_troubles(hours, now),
        schedules=Schedule.objects.filter(enabled=True).count(),
        executions=list(
            in_progress.select_related("job", "revision")
            .defer("revision__manifest", "plan")
            .order_by("-id")[:MOST_EXECUTIONS]
        ),
        awaiting_approval=in_progress.filter(state=ExecutionState.AWAITING_APPROVAL.value).count(),
        last_tick_at=mark.last_tick_at if mark else None,
    )


def _pcs(now: datetime) -> dict[str, int]:
    """How many PCs there are of each presence, and of each state that takes no work."""
    heard = "presence__last_seen_at__gte"
    word = Case(
        When(~Q(state=AgentState.ACTIVE), then=F("state")),
        When(**{heard: now - ALIVE_FOR}, then=Value(Presence.ONLINE.value)),
        When(**{heard: now - STALE_FOR}, then=Value(Presence.STALE.value)),
        default=Value(Presence.OFFLINE.value),
        output_field=CharField(),
    )
    rows = Agent.objects.order_by().annotate(word=word).values_list("word")
    counts: dict[str, int] = {presence.value: 0 for presence in Presence}
    counts.update(dict(rows.annotate(count=Count("pk"))))
    return counts


def _troubles(hours: Sequence[Hour], now: datetime) -> list[Trouble]:
    """Enabled schedules that cannot fire, are late, or whose runs fail; the worst first."""
    ended = by_schedule(hours)
    failing = [pk for pk, counts in ended.items() if pk is not None and counts.bad]
    failing.sort(key=lambda pk: -ended[pk].bad)
    stuck = Evaluation.objects.filter(
        until=None, reason__in=[reason.value for reason in TROUBLES]
    ).values("schedule_id")
    late = Q(next_fire_at__lt=now - LATE_AFTER)
    schedules = list(
        Schedule.objects.filter(enabled=True)
        .filter(Q(pk__in=stuck) | late | Q(pk__in=failing[:MOST_TROUBLED]))
        .select_related("job")
        .defer("manifest")[: 3 * MOST_TROUBLED]
    )
    in_force = {
        evaluation.schedule_id: evaluation
        for evaluation in Evaluation.objects.filter(until=None, schedule__in=schedules)
    }
    found = [
        _trouble(schedule, in_force.get(schedule.pk), ended.get(schedule.pk, Ended()), now)
        for schedule in schedules
    ]
    return sorted(found, key=lambda trouble: -trouble.ended.bad)[:MOST_TROUBLED]


def _trouble(
    schedule: Schedule, evaluation: Evaluation | None, ended: Ended, now: datetime
) -> Trouble:
    if evaluation and evaluation.reason in {reason.value for reason in TROUBLES}:
        return Trouble(schedule, evaluation.reason, evaluation.detail, ended)
    if schedule.next_fire_at and schedule.next_fire_at < now - LATE_AFTER:
        return Trouble(schedule, "late", "its time came and nobody fired it", ended)
    return Trouble(schedule, "failing", f"{ended.bad} of {ended.ok + ended.bad} runs failed", ended)
