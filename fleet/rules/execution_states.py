"""The states of an execution, the words derived from its commands, and when it is over."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from fleet.rules.command_states import FAILURES, CommandState


class ExecutionState(StrEnum):
    """What is stored; how far an execution has come is derived from its commands."""

    AWAITING_APPROVAL = "awaiting_approval"
    PLANNING = "planning"  # its commands are still being written, and no agent sees one
    LIVE = "live"
    ENDED = "ended"
    CANCELLED = "cancelled"


_E = ExecutionState

OPEN_EXECUTIONS = frozenset({_E.AWAITING_APPROVAL, _E.PLANNING, _E.LIVE})

EXECUTION_MOVES: dict[ExecutionState, frozenset[ExecutionState]] = {
    # One with waves or with many commands is planned first, others go live at once.
    _E.AWAITING_APPROVAL: frozenset({_E.PLANNING, _E.LIVE, _E.CANCELLED}),
    _E.PLANNING: frozenset({_E.LIVE, _E.ENDED, _E.CANCELLED}),
    _E.LIVE: frozenset({_E.ENDED, _E.CANCELLED}),
    _E.ENDED: frozenset(),
    _E.CANCELLED: frozenset(),
}


def execution_sources_of(new: ExecutionState) -> frozenset[ExecutionState]:
    """The states from which an execution may become `new`."""
    return frozenset(old for old, targets in EXECUTION_MOVES.items() if new in targets)


class Progress(StrEnum):
    """The word that people see for an execution."""

    AWAITING_APPROVAL = "awaiting approval"
    PLANNING = "planning"
    PENDING = "pending"  # sent, nothing back
    RUNNING = "running"
    COMPLETED = "completed"  # every command has ended, which does not mean well
    EXPIRED = "expired"  # over, and no agent ever answered
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Tally:
    """How the commands of one execution stand; `expected` counts waves still to come too."""

    expected: int
    waiting: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    skipped: int = 0
    expired: int = 0
    cancelled: int = 0
    outcome_unknown: int = 0

    @property
    def over(self) -> int:
        """Commands that have ended, in whatever way."""
        return (
            self.succeeded + self.failed + self.skipped + self.expired
            + self.cancelled + self.outcome_unknown
        )  # fmt: skip

    @property
    def is_complete(self) -> bool:
        """Whether nothing is waiting, running or still to be written."""
        return self.waiting == self.running == 0 and self.over >= self.expected


# Waiting covers what the agent holds but has not started: nothing has come back yet.
_COUNTED_AS: dict[CommandState, str] = {
    CommandState.STAGED: "waiting",
    CommandState.QUEUED: "waiting",
    CommandState.HANDED_OUT: "waiting",
    CommandState.STARTED: "running",
    CommandState.SUCCEEDED: "succeeded",
    **dict.fromkeys(FAILURES, "failed"),
    CommandState.SKIPPED: "skipped",
    CommandState.EXPIRED: "expired",
    CommandState.CANCELLED: "cancelled",
    CommandState.OUTCOME_UNKNOWN: "outcome_unknown",
}


def tally(counts: Mapping[CommandState, int], *, still_to_come: int = 0) -> Tally:
    """Add up an execution's commands by state; `still_to_come` are those of later waves."""
    sums: dict[str, int] = {}
    for state, count in counts.items():
        word = _COUNTED_AS[state]
        sums[word] = sums.get(word, 0) + count
    return Tally(expected=sum(counts.values()) + still_to_come, **sums)


def progress(state: ExecutionState, commands: Tally) -> Progress:
    """The word for an execution in `state` whose commands stand as `commands` says."""
    match state:
        case _E.AWAITING_APPROVAL:
            return Progress.AWAITING_APPROVAL
        case _E.PLANNING:
            return Progress.PLANNING
        case _E.CANCELLED:
            return Progress.CANCELLED
        case _E.LIVE | _E.ENDED:
            return _progress_of_live(commands)


def _progress_of_live(commands: Tally) -> Progress:
    if commands.is_complete:
        # An execution without a command was waited for by nobody: it is simply done.
        silent = commands.expected > 0 and commands.expired == commands.over
        return Progress.EXPIRED if silent else Progress.COMPLETED
    if commands.running or commands.over:
        return Progress.RUNNING
    return Progress.PENDING
