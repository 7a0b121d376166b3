"""Stop what is waiting and what is running, of one execution or of a whole job."""

from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from fleet.flow.closing import close_all
from fleet.flow.wakes import wake
from fleet.models import Command, Execution, Job, Wave, WaveState
from fleet.rules.command_states import HELD, WAITING, CommandState
from fleet.rules.execution_states import (
    OPEN_EXECUTIONS,
    ExecutionState,
    execution_sources_of,
)
from fleet.rules.refusals import Conflict
from scheduler.public import Actor, record_act

_WAITING = [state.value for state in WAITING]
_HELD = [state.value for state in HELD]
_OPEN = [state.value for state in OPEN_EXECUTIONS]
_MAY_BE_CANCELLED = [state.value for state in execution_sources_of(ExecutionState.CANCELLED)]
# Columns of 500 and 200 characters hold it with the name of whoever did it.
_MOST_REASON = 150


def kill_execution(execution: Execution, *, actor: Actor, now: datetime, reason: str = "") -> None:
    """Cancel what no agent has yet and have the agents stop the rest; Conflict if it is over."""
    with transaction.atomic():
        found = Execution.objects.select_for_update().get(pk=execution.pk)
        if found.state not in _OPEN:
            raise Conflict("the execution is over already")
        _stop(Execution.objects.filter(pk=found.pk), actor=actor, now=now, reason=reason)
        record_act(
            actor,
            "kill",
            object_kind="execution",
            object_id=found.pk,
            before={"state": found.state},
            reason=reason,
            now=now,
        )
    execution.refresh_from_db()


def kill_job(job: Job, *, actor: Actor, now: datetime, reason: str = "") -> int:
    """Stop every open execution of the job, and what agents started by themselves.

    Returns how many executions were open; none is no error.
    """
    with transaction.atomic():
        executions = Execution.objects.filter(job=job, state__in=_OPEN)
        # Locked in one order, so that two who stop the same job never wait for each other.
        keys = list(
            executions.order_by("pk").select_for_update(of=("self",)).values_list("pk", flat=True)
        )
        _stop(Execution.objects.filter(pk__in=keys), actor=actor, now=now, reason=reason)
        local = Command.objects.filter(job=job, execution=None)
        _stop_commands(local, why=_why(actor, reason), now=now)
        record_act(
            actor,
            "kill",
            object_kind="job",
            object_id=job.slug,
            after={"executions": len(keys)},
            reason=reason,
            now=now,
        )
    return len(keys)


def _stop(executions: QuerySet[Execution], *, actor: Actor, now: datetime, reason: str) -> None:
    why = _why(actor, reason)
    Wave.objects.filter(execution__in=executions, state=WaveState.WAITING).update(
        state=WaveState.STOPPED, reason=why
    )
    _stop_commands(Command.objects.filter(execution__in=executions), why=why, now=now)
    running = Command.objects.filter(execution=OuterRef("pk"), state__in=_HELD)
    # One that agents still work on ends with their answers.
    executions.filter(state__in=_MAY_BE_CANCELLED).filter(~Exists(running)).update(
        state=ExecutionState.CANCELLED.value, ended_at=now, end_reason=why
    )


def _stop_commands(commands: QuerySet[Command], *, why: str, now: datetime) -> None:
    close_all(commands.filter(state__in=_WAITING), CommandState.CANCELLED, reason=why, now=now)
    held = commands.filter(state__in=_HELD)
    held.filter(kill_requested_at=None).update(kill_requested_at=now)
    wake(held.values_list("agent_id", flat=True))


def _why(actor: Actor, reason: str) -> str:
    said = f": {reason[:_MOST_REASON]}" if reason else ""
    return f"stopped by {actor.name[:40]}{said}"
