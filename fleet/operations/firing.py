"""Fire a schedule by hand: its target now, whatever its window, period and cooldown say."""

from dataclasses import replace
from datetime import datetime

from django.db import transaction

from fleet.flow.evaluate import Evaluated, evaluate, schedules_to_evaluate
from fleet.flow.freeze import read_freeze
from fleet.flow.manifests import job_manifest
from fleet.flow.planning import plan_of
from fleet.flow.plans import DispatchPlan
from fleet.models import Execution, Schedule
from fleet.operations.running import dispatched, reason_problems, require_thaw
from fleet.rules.firing import Skip, decide
from fleet.rules.freeze import NOT_FROZEN
from fleet.rules.manifest import ManifestError
from fleet.rules.refusals import Conflict, Invalid, NotFound
from scheduler.public import Actor, record_act


def fire_schedule(
    schedule: Schedule,
    *,
    actor: Actor,
    now: datetime,
    reason: str = "",
    override_freeze: bool = False,
) -> Execution:
    """Dispatch the schedule's whole target, without those on whom the job is open.

    Freeze, revocation, approval and max_concurrent hold; a job that requires approval waits for a
    second person. Invalid, Conflict, Frozen, NotFound.
    """
    if problems := list(reason_problems(reason, override_freeze=override_freeze)):
        raise Invalid(problems)
    with transaction.atomic():
        require_thaw(now, override_freeze=override_freeze)
        found = _evaluated(schedule, now, override_freeze=override_freeze)
        plan = replace(
            _plan(found),
            actor=actor.name,
            actor_id=actor.user_id,
            reason=reason,
            override_freeze=override_freeze,
        )
        execution = dispatched(plan, now=now)
        record_act(
            actor,
            "fire",
            object_kind="schedule",
            object_id=found.schedule.slug,
            after={"execution": str(execution.pk), "override_freeze": override_freeze},
            reason=reason,
            now=now,
        )
    return execution


def _evaluated(schedule: Schedule, now: datetime, *, override_freeze: bool) -> Evaluated:
    row = schedules_to_evaluate().select_for_update(of=("self",)).filter(pk=schedule.pk).first()
    if row is None:
        raise NotFound(f'there is no schedule "{schedule.slug}"')
    freeze = NOT_FROZEN if override_freeze else read_freeze(now)
    try:
        return evaluate(row, now=now, freeze=freeze, by_hand=True)
    except ManifestError as error:
        raise Conflict(f"what is stored of it cannot be read: {error}") from None


def _plan(found: Evaluated) -> DispatchPlan:
    """The plan of the fire; Conflict names the gate that is closed to people, too."""
    decided = decide(found.facts)
    if isinstance(decided, Skip):
        raise Conflict(": ".join(filter(None, (decided.reason.value, decided.detail))))
    plan = plan_of(found, decided)
    return replace(plan, needs_approval=job_manifest(plan.revision).require_approval)
