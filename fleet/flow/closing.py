"""The end of commands, and everything that follows from it, in one transaction.

Whoever ends commands does it here: the exchange that brings results, the hand-out that finds a
deadline passed, the sweep, and people who stop things.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import UUID

from django.db import transaction
from django.db.models import F, QuerySet

from fleet.flow.settling import Settled, settle
from fleet.flow.wakes import wake
from fleet.models import Command, Job, Result
from fleet.models.ends import end_executions_without_work
from fleet.rules.command_states import CommandState, may_move


@dataclass(frozen=True, slots=True)
class Ending:
    """How a command (locked, as `locked()` returns it) ends. `at` is by the server's clock."""

    command: Command
    state: CommandState
    reason: str
    at: datetime


def locked(commands: QuerySet[Command]) -> list[Command]:
    """Return the commands, locked until the transaction ends, with what `close` needs of them.

    In the order of their keys, so that two who lock the same ones never wait for each other.
    """
    query = commands.select_related("revision").defer("revision__manifest").order_by("pk")
    return list(query.select_for_update(of=("self",)))


def close_all(
    commands: QuerySet[Command], state: CommandState, *, reason: str, now: datetime
) -> list[Command]:
    """End those of the commands that may still become `state`; return them.

    Call it inside a transaction.
    """
    endings = [Ending(command, state, reason, now) for command in locked(commands)]
    return close(endings, now=now)


def give_up(commands: QuerySet[Command], *, reason: str, now: datetime) -> list[Command]:
    """End what nobody answers for any more as outcome unknown; return those that ended.

    Call it inside a transaction.
    """
    ended = close_all(commands, CommandState.OUTCOME_UNKNOWN, reason=reason, now=now)
    Result.objects.bulk_create(
        (unanswered(command, reason=reason, now=now) for command in ended), ignore_conflicts=True
    )
    return ended


def unanswered(command: Command, *, reason: str, now: datetime) -> Result:
    """Return the result (not saved) that stands in for an answer that never came."""
    return Result(
        command_id=command.pk,
        execution_id=command.execution_id,
        agent_id=command.agent_id,
        job_id=command.job_id,
        schedule_id=command.schedule_id,
        job_version=command.revision.version,
        revision_id=command.revision_id,
        attempt=command.attempt or 1,
        outcome=CommandState.OUTCOME_UNKNOWN.value,
        reason=reason,
        started_at=command.started_at,
        received_at=now,
        reaped=True,
    )


def close(endings: Sequence[Ending], *, now: datetime) -> list[Command]:
    """End locked commands where the table of states allows it; return those that ended.

    Their slots are free, the success facts, failures and due times of their agents follow, and the
    execution ends with its last command. Call it inside the transaction that locked them.
    """
    allowed = [one for one in endings if may_move(CommandState(one.command.state), one.state)]
    if not allowed:
        return []
    alike: dict[tuple[CommandState, str], list[UUID]] = {}
    for ending in allowed:
        alike.setdefault((ending.state, ending.reason), []).append(ending.command.pk)
    for (state, reason), keys in alike.items():
        Command.objects.filter(pk__in=keys).update(
            state=state.value, reason=reason, ended_at=now, holds_slot=False
        )
    release_slots(ending.command for ending in allowed)
    settle([_settled(ending) for ending in allowed], now=now)
    executions = {
        one.command.execution_id for one in allowed if one.command.execution_id is not None
    }
    if executions:
        transaction.on_commit(partial(end_executions, executions, now=now), robust=True)
    return [ending.command for ending in allowed]


def release_slots(commands: Iterable[Command]) -> None:
    """Free the slots of `max_concurrent` that these commands held, and call who waits for them."""
    freed = Counter(command.job_id for command in commands if command.holds_slot)
    for job_id, count in sorted(freed.items()):
        jobs = Job.everything.filter(pk=job_id)
        if not jobs.filter(slots_taken__gte=count).update(slots_taken=F("slots_taken") - count):
            # Never below none: the sweep counts again and finds what is missing.
            jobs.update(slots_taken=0)
        waiting = Command.objects.filter(
            job_id=job_id, state=CommandState.QUEUED.value, max_concurrent__isnull=False
        )
        wake(waiting.order_by("pk").values_list("agent_id", flat=True)[:count])


def end_executions(executions: Iterable[UUID], *, now: datetime) -> int:
    """End those of the executions that have nothing open and no wave to come; return how many.

    Called after the commit that closed their commands: two transactions that each close one of the
    last two commands would both see the other's still open.
    """
    return end_executions_without_work(sorted(executions), now=now)


def _settled(ending: Ending) -> Settled:
    command = ending.command
    return Settled(
        job_id=command.job_id,
        agent_id=command.agent_id,
        schedule_id=command.schedule_id,
        state=ending.state,
        version=command.revision.version,
        ended_at=ending.at,
    )
