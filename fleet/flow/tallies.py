"""How the commands of executions stand, counted in one query for a whole list."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, Exists, OuterRef

from fleet.models import Command, Execution, Job
from fleet.rules.command_states import WAITING, CommandState
from fleet.rules.execution_states import (
    OPEN_EXECUTIONS,
    ExecutionState,
    Progress,
    Tally,
    progress,
    tally,
)

_OPEN = [state.value for state in OPEN_EXECUTIONS]
# Nothing has come back yet from a PC whose command is in one of these.
_SILENT = [state.value for state in WAITING | {CommandState.HANDED_OUT}]
# A list counts at most so many commands in all; larger executions are counted on their own page.
MOST_COUNTED = 20_000


@dataclass(frozen=True, slots=True)
class Standing:
    """Where an execution stands; without a tally it is too large to be counted in a list."""

    word: str
    tally: Tally | None


def tallies_of(executions: Iterable[Execution]) -> dict[UUID, Tally]:
    """The tally of each execution, whatever its size."""
    by_id = {execution.pk: execution for execution in executions}
    counts: dict[UUID, dict[CommandState, int]] = {pk: {} for pk in by_id}
    rows = (
        Command.objects.filter(execution_id__in=by_id)
        .order_by()
        .values_list("execution_id", "state")
        .annotate(count=Count("pk"))
    )
    for pk, state, count in rows:
        counts[pk][CommandState(state)] = count
    return {
        pk: tally(found, still_to_come=max(by_id[pk].planned - sum(found.values()), 0))
        for pk, found in counts.items()
    }


def standings_of(executions: Iterable[Execution]) -> dict[UUID, Standing]:
    """Where the executions of a list stand, the small ones with their tallies."""
    ordered = sorted(executions, key=lambda execution: execution.planned)
    counted, budget = [], MOST_COUNTED
    for execution in ordered:
        budget -= execution.planned
        if budget < 0:
            break
        counted.append(execution)
    tallies = tallies_of(counted)
    return {
        execution.pk: Standing(
            word_of(execution, tallies.get(execution.pk)), tallies.get(execution.pk)
        )
        for execution in ordered
    }


def word_of(execution: Execution, counted: Tally | None) -> str:
    """The word for an execution; its stored state where nothing was counted."""
    if counted is None:
        return execution.state
    state = ExecutionState(execution.state)
    # An ended execution whose old commands are pruned is not waiting for them.
    if state is ExecutionState.ENDED and not counted.over and not counted.running:
        return Progress.COMPLETED
    return progress(state, counted)


@dataclass(frozen=True, slots=True)
class Live:
    """How many open executions of a job have begun to answer, and how many have not."""

    running: int = 0
    pending: int = 0


def live_of(jobs: Iterable[Job]) -> dict[int, Live]:
    """The open executions of each job, in one query."""
    answered = Command.objects.filter(execution=OuterRef("pk")).exclude(state__in=_SILENT)
    rows = (
        Execution.objects.filter(job__in=[job.pk for job in jobs], state__in=_OPEN)
        .order_by()
        .annotate(answered=Exists(answered))
        .values_list("job_id", "answered")
        .annotate(count=Count("pk"))
    )
    found: dict[int, dict[str, int]] = {}
    for key, has_answered, count in rows:
        found.setdefault(key, {})["running" if has_answered else "pending"] = count
    return {key: Live(**counts) for key, counts in found.items()}
