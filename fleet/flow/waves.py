"""Publish what is written: a whole execution, or one wave of it when its time has come."""

from datetime import datetime
from uuid import UUID

from django.db import transaction

from fleet.flow.closing import close_all
from fleet.flow.freeze import read_freeze
from fleet.flow.plans import StoredPlan
from fleet.flow.wakes import MOST_NAMED, wake, wake_everybody
from fleet.models import Command, Execution, Wave, WaveState
from fleet.rules.command_states import FAILURES, CommandState
from fleet.rules.execution_states import ExecutionState, execution_sources_of
from scheduler.public import request

TOO_MANY_FAILED = "too many PCs of the earlier waves failed"


def publish(execution: Execution, plan: StoredPlan, *, planned: int, now: datetime) -> None:
    """Let an execution whose commands are all written go live, its first wave with it."""
    moved = _move(execution.pk, ExecutionState.LIVE, planned=planned)
    if not moved:
        return
    execution.state, execution.planned = ExecutionState.LIVE.value, planned
    if not planned:
        _move(execution.pk, ExecutionState.ENDED, ended_at=now, end_reason="nobody was left")
        return
    if not any(wave.group for wave in plan.waves):
        _call(execution.pk, 0, count=planned)
        return
    for wave in plan.waves:
        if wave.due_at <= now:
            release_wave(execution.pk, wave.number, now=now)
        else:
            request("fleet.wave", key=f"{execution.pk}:{wave.number}", at=wave.due_at, now=now)


def _move(execution_id: UUID, new: ExecutionState, **fields: object) -> int:
    sources = [state.value for state in execution_sources_of(new)]
    return Execution.objects.filter(pk=execution_id, state__in=sources).update(
        state=new.value, **fields
    )


def release_wave(execution_id: UUID, number: int, *, now: datetime) -> bool:
    """Show a wave's commands to their agents if its time has come and nothing forbids it.

    Returns whether it did. While the fleet is frozen the wave keeps waiting; when too many of
    the earlier waves failed it is stopped, and all later ones with it.
    """
    with transaction.atomic():
        wave = (
            Wave.objects.select_for_update(of=("self",), no_key=True)
            .select_related("execution")
            .filter(
                execution=execution_id,
                number=number,
                state=WaveState.WAITING,
                due_at__lte=now,
                execution__state=ExecutionState.LIVE,
            )
            .first()
        )
        if wave is None:
            return False
        execution = wave.execution
        if not execution.override_freeze and read_freeze(now, lock=True).frozen:
            return False
        if _failed_too_often(execution, number):
            stop_waves(execution.pk, reason=TOO_MANY_FAILED, now=now)
            return False
        Wave.objects.filter(pk=wave.pk).update(state=WaveState.RELEASED, released_at=now)
        _release_commands(execution_id, number)
        return True


def release_due_waves(*, now: datetime, most: int = 100) -> int:
    """Release the waves whose time has come, the longest due first; return how many."""
    due = Wave.objects.filter(
        state=WaveState.WAITING, due_at__lte=now, execution__state=ExecutionState.LIVE
    ).order_by("due_at", "pk")
    keys = list(due.values_list("execution_id", "number")[:most])
    return sum(release_wave(execution, number, now=now) for execution, number in keys)


def stop_waves(execution_id: UUID, *, reason: str, now: datetime) -> int:
    """Stop the waves that still wait, and cancel their commands; return how many waves that were.

    Call it inside a transaction.
    """
    waiting = Wave.objects.filter(execution=execution_id, state=WaveState.WAITING)
    numbers = list(waiting.values_list("number", flat=True))
    stopped = waiting.update(state=WaveState.STOPPED, reason=reason)
    staged = Command.objects.filter(
        execution=execution_id, wave__in=numbers, state=CommandState.STAGED
    )
    close_all(staged, CommandState.CANCELLED, reason=reason, now=now)
    return stopped


def _failed_too_often(execution: Execution, number: int) -> bool:
    limit = StoredPlan.of(execution).max_failures
    if limit is None:
        return False
    earlier = Command.objects.filter(execution=execution, wave__lt=number)
    failed = earlier.filter(state__in=[state.value for state in FAILURES]).count()
    return limit.is_exceeded(failed, earlier.count())


def _release_commands(execution_id: UUID, number: int) -> None:
    staged = Command.objects.filter(execution=execution_id, wave=number)
    count = staged.move({CommandState.STAGED}, CommandState.QUEUED)
    _call(execution_id, number, count=count)


def _call(execution_id: UUID, number: int, *, count: int) -> None:
    """Call the agents that have something to fetch now."""
    if count > MOST_NAMED:
        wake_everybody()
        return
    commands = Command.objects.filter(
        execution=execution_id, wave=number, state=CommandState.QUEUED
    )
    wake(commands.values_list("agent_id", flat=True))
