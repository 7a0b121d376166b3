"""What the page of one execution shows: progress, waves, and its PCs a page at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.core.paginator import Page

from fleet.admin.cells import parts_of
from fleet.flow.tallies import tallies_of, word_of
from fleet.models import Command, Execution, Result, Wave
from fleet.rules.charts import Part
from fleet.rules.command_states import CommandState
from fleet.rules.execution_states import OPEN_EXECUTIONS, ExecutionState, Tally
from scheduler.admin.paging import CappedPaginator

PCS_ON_A_PAGE = 100


@dataclass(frozen=True, slots=True)
class PcRow:
    """One PC of the execution, with its result if there is one."""

    command: Command
    result: Result | None


@dataclass(frozen=True, slots=True)
class ExecutionPage:
    """Everything about one execution."""

    execution: Execution
    word: str
    tally: Tally
    parts: Sequence[Part]
    waves: Sequence[Wave]
    rows: Sequence[PcRow]
    # The page of PCs that is shown, and the state it is narrowed to.
    pcs: "Page[Command]"
    state: str
    states: Sequence[str]
    is_over: bool
    has_failed: bool

    @property
    def done_percent(self) -> int:
        """How much of it is over, for the progress bar."""
        return 100 * self.tally.over // self.tally.expected if self.tally.expected else 100


def execution_page(execution: Execution, query: Mapping[str, str]) -> ExecutionPage:
    """Read the page; `query` may hold `state` and `page`, anything else in them is ignored."""
    counted = tallies_of([execution])[execution.pk]
    state = query.get("state", "")
    if state not in {known.value for known in CommandState}:
        state = ""
    commands = execution.commands.select_related("agent").defer("agent__facts").order_by("agent_id")
    if state:
        commands = commands.filter(state=state)
    page = CappedPaginator(commands, PCS_ON_A_PAGE).get_page(query.get("page"))
    shown = list(page.object_list)
    results = Result.objects.in_bulk([command.pk for command in shown])
    return ExecutionPage(
        execution=execution,
        word=word_of(execution, counted),
        tally=counted,
        parts=parts_of(counted),
        waves=list(execution.waves.order_by("number")),
        rows=[PcRow(command, results.get(command.pk)) for command in shown],
        pcs=page,
        state=state,
        states=[known.value for known in CommandState],
        is_over=ExecutionState(execution.state) not in OPEN_EXECUTIONS,
        has_failed=counted.failed > 0,
    )
