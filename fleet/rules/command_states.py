"""The states of a command, its allowed moves, and when a silent one is given up."""

from datetime import datetime, timedelta
from enum import StrEnum


class CommandState(StrEnum):
    """Where one agent's share of an execution stands; stored as written here."""

    STAGED = "staged"  # written, but its wave is not published yet: invisible to the agent
    QUEUED = "queued"
    HANDED_OUT = "handed_out"
    STARTED = "started"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    KILLED = "killed"
    SKIPPED = "skipped"  # was not meant to run any more; carries a reason
    REFUSED = "refused"  # the agent would not or could not run it; carries a reason
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    OUTCOME_UNKNOWN = "outcome_unknown"


_S = CommandState

# Nobody but the server knows of these yet.
WAITING = frozenset({_S.STAGED, _S.QUEUED})
# The agent has it: only the agent can say how it ended.
HELD = frozenset({_S.HANDED_OUT, _S.STARTED})
OPEN = WAITING | HELD
TERMINAL = frozenset(CommandState) - OPEN
# What the agent's answer can be; the rest of TERMINAL is the server's judgement.
ANSWERS = frozenset(
    {_S.SUCCEEDED, _S.FAILED, _S.TIMED_OUT, _S.KILLED, _S.SKIPPED, _S.REFUSED, _S.EXPIRED}
)
# Runs that make the next one of a reconcile schedule wait longer. Silence is none of them.
FAILURES = frozenset({_S.FAILED, _S.TIMED_OUT, _S.KILLED, _S.REFUSED})
# Ends of commands that ran, or may have: what a machine last did.
RUNS = FAILURES | {_S.SUCCEEDED, _S.OUTCOME_UNKNOWN}

MOVES: dict[CommandState, frozenset[CommandState]] = {
    _S.STAGED: frozenset({_S.QUEUED, _S.EXPIRED, _S.CANCELLED}),
    _S.QUEUED: frozenset({_S.HANDED_OUT, _S.SKIPPED, _S.EXPIRED, _S.CANCELLED}),
    # A start report may be lost, so that the answer can come straight after the hand-out.
    _S.HANDED_OUT: ANSWERS | {_S.STARTED, _S.CANCELLED, _S.OUTCOME_UNKNOWN},
    _S.STARTED: frozenset(
        {_S.SUCCEEDED, _S.FAILED, _S.TIMED_OUT, _S.KILLED, _S.REFUSED, _S.OUTCOME_UNKNOWN}
    ),
    # A late real answer corrects what was given up; nothing else leaves an end.
    _S.OUTCOME_UNKNOWN: ANSWERS,
    **{state: frozenset() for state in TERMINAL - {_S.OUTCOME_UNKNOWN}},
}


def sources_of(new: CommandState) -> frozenset[CommandState]:
    """The states from which a command may become `new`."""
    return frozenset(old for old, targets in MOVES.items() if new in targets)


def may_move(old: CommandState, new: CommandState) -> bool:
    """Whether the table allows `old` to become `new`; staying is no move."""
    return new in MOVES[old]


_GRACE = timedelta(minutes=2)
_LONGEST_WAIT = timedelta(days=365)
# A run whose limit nobody can tell is given up after a day.
NO_LIMIT_KNOWN = timedelta(hours=24)


def give_up_at(
    started_at: datetime, timeout: timedelta | None, *, retries: timedelta = timedelta(0)
) -> datetime:
    """When a started run that has not answered is given up.

    `timeout` is one attempt's limit (None = unknown), `retries` what the further attempts and
    their pauses may take on top: without it a run that retries would be given up too early.
    """
    if timeout is None:
        return started_at + NO_LIMIT_KNOWN
    longest = min(timeout + retries + max(_GRACE, timeout / 2), _LONGEST_WAIT)
    return started_at + longest


def is_given_up(*, started_at: datetime, expires_at: datetime | None, now: datetime) -> bool:
    """Whether a started run is past its `expires_at` (or, without one, past a day)."""
    return (expires_at if expires_at is not None else started_at + NO_LIMIT_KNOWN) < now
