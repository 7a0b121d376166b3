"""Turn a plan into an execution and its commands, all of them or none."""

from datetime import datetime

from django.db import transaction

from fleet.flow.filling import fill_at_once
from fleet.flow.plans import (
    DispatchPlan,
    StoredPlan,
    StoredWave,
    shifted,
    to_store,
    write_target,
)
from fleet.models import Execution, Schedule, Shape, Wave, WaveState
from fleet.rules.execution_states import ExecutionState
from scheduler.public import request

NEVER_OPEN = "its time falls where nothing may start before the schedule ends"


class NothingToDispatchError(Exception):
    """Nobody of the target can be sent anything now. Nothing was written."""


def dispatch(plan: DispatchPlan, *, now: datetime) -> Execution:
    """Write the execution of a plan and its commands; return the execution.

    A small one is published at once. One of more than a thousand commands is returned while
    `planning` and written by tasks of kind `fleet.fanout`, so that it delays nobody else; one
    that waits for approval has no commands until `start`. Raises NothingToDispatchError.
    """
    with transaction.atomic():
        execution = _insert(plan, now=now)
        if not plan.needs_approval:
            _fill(execution, now=now)
        return execution


def start(execution: Execution, *, now: datetime) -> bool:
    """Plan an execution that has been approved; False where somebody else moved it first.

    Its times count from now. Raises NothingToDispatchError.
    """
    with transaction.atomic():
        later = now - execution.created_at
        plan = execution.plan | {
            "waves": shifted(execution.plan["waves"], later, execution.plan["deadline_at"])
        }
        deadline_at = max(datetime.fromisoformat(wave["deadline_at"]) for wave in plan["waves"])
        moved = Execution.objects.filter(
            pk=execution.pk, state=ExecutionState.AWAITING_APPROVAL
        ).update(state=ExecutionState.PLANNING, plan=plan, deadline_at=deadline_at)
        if not moved:
            return False
        execution.state, execution.plan = ExecutionState.PLANNING.value, plan
        execution.deadline_at = deadline_at
        _insert_waves(execution)
        _fill(execution, now=now)
        return True


def _insert(plan: DispatchPlan, *, now: datetime) -> Execution:
    possible = [wave for wave in plan.waves(now) if wave.opening.is_possible]
    if not possible:
        raise NothingToDispatchError(NEVER_OPEN)
    waves = tuple(StoredWave.of(wave, plan.terms, latest=plan.deadline_at) for wave in possible)
    state = ExecutionState.AWAITING_APPROVAL if plan.needs_approval else ExecutionState.PLANNING
    execution = Execution.objects.create(
        job_id=plan.revision.job_id,
        revision=plan.revision,
        schedule=plan.schedule,
        schedule_slug=plan.schedule.slug if plan.schedule else "",
        origin=plan.origin,
        nominal_at=plan.nominal_at,
        state=state.value,
        actor=plan.actor,
        actor_id=plan.actor_id,
        reason=plan.reason,
        override_freeze=plan.override_freeze,
        target=write_target(plan.target),
        plan=to_store(plan, waves),
        created_at=now,
        deadline_at=max(wave.deadline_at for wave in waves),
    )
    _insert_impossible_waves(execution, plan, now=now)
    if not plan.needs_approval:
        _insert_waves(execution)
    return execution


def _insert_impossible_waves(execution: Execution, plan: DispatchPlan, *, now: datetime) -> None:
    Wave.objects.bulk_create(
        Wave(
            execution=execution,
            number=wave.number,
            group_slug=wave.group,
            due_at=wave.opening.due_at,
            deadline_at=wave.opening.due_at,
            state=WaveState.STOPPED,
            reason=NEVER_OPEN,
        )
        for wave in plan.waves(now)
        if not wave.opening.is_possible
    )


def _insert_waves(execution: Execution) -> None:
    """A row for each wave of a rollout; one dispatch without a rollout needs none."""
    Wave.objects.bulk_create(
        Wave(
            execution=execution,
            number=wave.number,
            group_slug=wave.group,
            due_at=wave.due_at,
            deadline_at=wave.deadline_at,
        )
        for wave in StoredPlan.of(execution).waves
        if wave.group
    )


def _fill(execution: Execution, *, now: datetime) -> None:
    schedule = execution.schedule
    if execution.plan["reconciles"] and schedule and schedule.shape == Shape.PER_TARGET:
        Schedule.objects.filter(pk=schedule.pk).update(last_dispatched_at=now)
    written = fill_at_once(execution, now=now)
    if written is None:
        request("fleet.fanout", key=str(execution.pk), now=now)
    elif not written:
        raise NothingToDispatchError("nobody of the target can be sent the job now")
