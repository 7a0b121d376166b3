"""The fleet in figures, for a collector: counted over what is open, never over history."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, QuerySet

from fleet.flow.freeze import known_freeze
from fleet.models import Agent, AgentState, Command, Execution, Schedule, TickMark
from fleet.rules.command_states import OPEN
from fleet.rules.execution_states import OPEN_EXECUTIONS
from fleet.rules.freeze import FreezeState


@dataclass(frozen=True, slots=True)
class Figures:
    """How many there are of what at one moment; every state is named, also where it has none."""

    freeze: FreezeState
    agents: Mapping[str, int]
    online: int
    commands: Mapping[str, int]
    executions: Mapping[str, int]
    schedules: int
    # Since when nobody has looked at the schedules; None = nobody ever did.
    tick_age_s: float | None


def figures(now: datetime) -> Figures:
    """Read the figures: seven queries."""
    mark = TickMark.objects.first()
    last_tick_at = mark.last_tick_at if mark else None
    return Figures(
        freeze=known_freeze(now),
        agents=_by_state(Agent.objects.all(), AgentState.values),
        online=Agent.objects.alive(now).count(),
        commands=_by_state(Command.objects.open(), [state.value for state in OPEN]),
        executions=_by_state(
            Execution.objects.filter(state__in=[state.value for state in OPEN_EXECUTIONS]),
            [state.value for state in OPEN_EXECUTIONS],
        ),
        schedules=Schedule.objects.filter(enabled=True).count(),
        tick_age_s=(now - last_tick_at).total_seconds() if last_tick_at else None,
    )


def _by_state(rows: QuerySet[Any], states: list[str]) -> Mapping[str, int]:
    counted = rows.order_by().values_list("state").annotate(count=Count("pk"))
    return dict.fromkeys(sorted(states), 0) | dict(counted)
