"""What becomes of a result that an agent reports, given what is known of its command."""

from dataclasses import dataclass
from enum import StrEnum

from fleet.rules.command_states import TERMINAL, WAITING, CommandState, may_move

_S = CommandState
# The server's own judgement on a command; the PC may know better.
_JUDGED = frozenset({_S.CANCELLED, _S.EXPIRED, _S.SKIPPED, _S.OUTCOME_UNKNOWN})


class Verdict(StrEnum):
    """The answer to an item; with each of them the agent need not send it again."""

    STORED = "stored"
    DUPLICATE = "duplicate"
    # Another result of this command is stored already, and stands.
    CONFLICT = "conflict"
    # No such command of this agent, or not any more.
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Stored:
    """The result that is stored: its digest, and whether the server wrote it for want of one."""

    digest: str
    is_stand_in: bool


@dataclass(frozen=True, slots=True)
class Store:
    """Store the result. `ends_as` is the end of the command, None where it has ended for good."""

    ends_as: CommandState | None
    late: bool


def judge_result(
    state: CommandState, stored: Stored | None, *, outcome: CommandState, digest: str
) -> Store | Verdict:
    """Tell what to do with a result of a command in `state`."""
    if stored is not None and not stored.is_stand_in:
        return Verdict.DUPLICATE if stored.digest == digest else Verdict.CONFLICT
    if state in TERMINAL - _JUDGED:
        # It ended by an answer that was pruned since.
        return Verdict.DUPLICATE
    return Store(_end(state, outcome), late=state in _JUDGED)


def _end(state: CommandState, outcome: CommandState) -> CommandState | None:
    if state in WAITING:
        # The PC has it, so it was handed out: the server came back from a backup.
        state = _S.HANDED_OUT
    if may_move(state, outcome):
        return outcome
    if state is _S.STARTED:
        # It ran, and the next try did not come about: that is a failure, whatever its word.
        return _S.FAILED
    return None
