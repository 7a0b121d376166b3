"""Write an execution's commands: at once where they are few, else a thousand at a time.

Agents see nothing of a wave until all of it is written.
"""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import F, QuerySet

from fleet.flow.plans import (
    Chosen,
    DueAgents,
    LiveMembers,
    StoredPlan,
    StoredWave,
    WholeTarget,
    read_target,
)
from fleet.flow.rosters import (
    due_rows,
    first_wave,
    has_open_command,
    is_alive,
    roster_of,
    roster_of_groups,
)
from fleet.flow.waves import publish
from fleet.models import Agent, Execution, ScheduleAgent
from fleet.models.insertion import NewCommands
from fleet.rules.command_states import CommandState
from fleet.rules.execution_states import ExecutionState

# One transaction writes so many: SQLite lets nobody else write meanwhile.
CHUNK = 1000


@dataclass(frozen=True, slots=True)
class _Pick:
    agent: int
    wave: int


def fill_at_once(execution: Execution, *, now: datetime) -> int | None:
    """Write and publish all commands of a small execution; return how many.

    None = there are too many for one transaction, and nothing is written.
    """
    plan = StoredPlan.of(execution)
    picks = _picks(execution, plan, most=CHUNK + 1, now=now)
    if len(picks) > CHUNK:
        return None
    written = _write(execution, plan, picks, now=now)
    publish(execution, plan, planned=written, now=now)
    return written


def fill_chunk(execution_id: UUID, *, now: datetime) -> bool:
    """Write the next commands of an execution that is being planned; publish it at its end.

    Returns whether there is more to do. Run again after a crash it goes on where it was: what a
    chunk wrote and how far it came are one transaction.
    """
    with transaction.atomic():
        execution = (
            Execution.objects.select_for_update(of=("self",), no_key=True)
            .select_related("schedule")
            .filter(pk=execution_id, state=ExecutionState.PLANNING)
            .first()
        )
        if execution is None:
            return False
        plan = StoredPlan.of(execution)
        picks = _picks(execution, plan, most=CHUNK, now=now)
        written = _write(execution, plan, picks, now=now)
        if len(picks) < CHUNK:
            publish(execution, plan, planned=execution.planned + written, now=now)
            return False
        Execution.objects.filter(pk=execution.pk).update(
            cursor=picks[-1].agent, planned=F("planned") + written
        )
        return True


def _picks(execution: Execution, plan: StoredPlan, *, most: int, now: datetime) -> list[_Pick]:
    match plan.selection:
        case Chosen(agents):
            return [_Pick(agent, 0) for agent in agents]
        case DueAgents(limit):
            due = due_rows(execution.schedule_id, execution.job_id, now)
            room = _room(execution, limit, most)
            return [_Pick(agent, 0) for agent in due.values_list("agent_id", flat=True)[:room]]
        case LiveMembers(limit):
            room = _room(execution, limit, most)
            return _picks_of_target(execution, plan, most=room, now=now)
        case WholeTarget():
            return _picks_of_target(execution, plan, most=most, now=now)


def _room(execution: Execution, limit: int | None, most: int) -> int:
    """How many more may be picked at once, if `limit` is the execution's own."""
    return most if limit is None else max(0, min(most, limit - execution.planned))


def _picks_of_target(
    execution: Execution, plan: StoredPlan, *, most: int, now: datetime
) -> list[_Pick]:
    groups = {wave.number: wave.group for wave in plan.waves if wave.group}
    wanted = (
        roster_of_groups(groups.values()) if groups else roster_of(read_target(execution.target))
    )
    if isinstance(plan.selection, LiveMembers):
        wanted = wanted.filter(is_alive(now))
    if not isinstance(plan.selection, WholeTarget) or plan.selection.skip_in_flight:
        wanted = wanted.exclude(has_open_command(execution.job_id))
    wanted = wanted.filter(pk__gt=execution.cursor).order_by("pk")
    if groups:
        waved = wanted.annotate(wave_number=first_wave(groups))
        return [_Pick(*row) for row in waved.values_list("pk", "wave_number")[:most]]
    return [_Pick(pk, plan.waves[0].number) for pk in _keys(wanted, most)]


def _keys(agents: QuerySet[Agent], most: int) -> list[int]:
    return list(agents.values_list("pk", flat=True)[:most])


def _write(execution: Execution, plan: StoredPlan, picks: list[_Pick], *, now: datetime) -> int:
    by_wave: dict[int, list[int]] = defaultdict(list)
    for pick in picks:
        by_wave[pick.wave].append(pick.agent)
    waves = {wave.number: wave for wave in plan.waves}
    written = 0
    for number, agents in sorted(by_wave.items()):
        wave = waves[number]
        written += _commands(execution, plan, wave, now=now).insert_for(agents)
        if plan.reconciles and execution.schedule_id is not None:
            mark_dispatched(execution.schedule_id, agents, at=wave.due_at)
    return written


def _commands(
    execution: Execution, plan: StoredPlan, wave: StoredWave, *, now: datetime
) -> NewCommands:
    return NewCommands(
        execution_id=execution.pk,
        job_id=execution.job_id,
        revision_id=execution.revision_id,
        schedule_id=execution.schedule_id,
        wave=wave.number,
        # Of an execution that is not live nothing is handed out; a wave waits by itself.
        state=CommandState.STAGED if wave.group else CommandState.QUEUED,
        reconciles=plan.reconciles,
        max_concurrent=execution.plan["max_concurrent"],
        override_freeze=execution.override_freeze,
        created_at=now,
        due_at=wave.due_at,
        span=wave.span,
        seed=plan.seed,
        wait=plan.wait,
        deadline_at=wave.deadline_at,
    )


def mark_dispatched(schedule_id: int, agents: list[int], *, at: datetime) -> None:
    """Mute the agents of a reconcile schedule: in flight from now on, due again by a result."""
    ScheduleAgent.objects.filter(schedule=schedule_id, agent__in=agents).update(
        due_at=None, parked_due_at=None, last_dispatched_at=at
    )
