"""Which schedules a tick has to look at: one query, whatever the size of fleet and history."""

from datetime import datetime

from django.db.models import Exists, OuterRef, Q, QuerySet

from fleet.flow.evaluations import Verdict, record_for
from fleet.models import Evaluation, Schedule, ScheduleAgent, Shape
from fleet.rules.firing import Reason
from fleet.rules.freeze import FreezeState


def schedules_to_look_at(*, now: datetime, after_thaw: bool) -> list[int]:
    """The schedules for which something may have to be done, by key.

    Those whose time to look has come, calendars that are due, reconcile schedules with an agent
    that is due; after a thaw also all that stood still for the freeze. Of the disabled ones those
    that do not say so yet.
    """
    wanted = Q(look_at__lte=now) | _due_calendars(now)
    wanted |= Q(held=False, shape=Shape.PER_PC, targets_dirty_at=None) & Q(_has_due_agent(now))
    if after_thaw:
        wanted |= Q(Exists(_in_force(Reason.FROZEN)))
    silent = Q(~Exists(_in_force(Reason.DISABLED)), enabled=False)
    return _keys(Schedule.objects.filter(Q(wanted, enabled=True) | silent))


def calendars_to_look_at(*, now: datetime) -> list[int]:
    """The calendars that are due: while frozen, their nominal times are stored as skipped."""
    return _keys(Schedule.objects.filter(_due_calendars(now), enabled=True))


def hold_all(freeze: FreezeState, *, now: datetime) -> int:
    """Put the freeze in force as the reason of every enabled schedule; return how many changed.

    Set-wise: ten thousand schedules stand still at once when somebody freezes the fleet.
    """
    verdict = Verdict(Reason.FROZEN, freeze.words, freeze.until)
    moving = Schedule.objects.filter(~Exists(_in_force(Reason.FROZEN)), enabled=True)
    keys = _keys(moving.exclude(runs_on_agent=True))
    if keys:
        record_for(keys, verdict, now=now)
    return len(keys)


def _due_calendars(now: datetime) -> Q:
    return Q(next_fire_at__lte=now, runs_on_agent=False)


def _has_due_agent(now: datetime) -> Exists:
    return Exists(ScheduleAgent.objects.due(now).filter(schedule=OuterRef("pk")))


def _in_force(reason: Reason) -> QuerySet[Evaluation]:
    return Evaluation.objects.filter(schedule=OuterRef("pk"), until=None, reason=reason.value)


def _keys(schedules: QuerySet[Schedule]) -> list[int]:
    return list(schedules.order_by("pk").values_list("pk", flat=True))
