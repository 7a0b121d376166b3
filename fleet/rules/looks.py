"""How a state looks: its tone and its icon, so that colour is never the only difference."""

from fleet.rules.command_states import CommandState
from fleet.rules.execution_states import ExecutionState, Progress
from scheduler.rules.looks import BAD, IDLE, OK, RUN, STOPPED, UNKNOWN, WAIT, WARN, Look

_LOOKS: dict[str, Look] = {
    CommandState.STAGED: WAIT,
    CommandState.QUEUED: WAIT,
    CommandState.HANDED_OUT: WAIT,
    CommandState.STARTED: RUN,
    CommandState.SUCCEEDED: OK,
    CommandState.FAILED: BAD,
    CommandState.TIMED_OUT: BAD,
    CommandState.KILLED: Look("bad", "stop"),
    CommandState.SKIPPED: IDLE,
    CommandState.REFUSED: WARN,
    CommandState.EXPIRED: Look("warn", "wait"),
    CommandState.CANCELLED: STOPPED,
    CommandState.OUTCOME_UNKNOWN: UNKNOWN,
    ExecutionState.AWAITING_APPROVAL: Look("warn", "wait"),
    ExecutionState.PLANNING: WAIT,
    ExecutionState.LIVE: RUN,
    ExecutionState.ENDED: IDLE,
    Progress.AWAITING_APPROVAL: Look("warn", "wait"),
    Progress.PENDING: WAIT,
    Progress.RUNNING: RUN,
    Progress.COMPLETED: OK,
    # PCs, and what an operator decides about them.
    "online": OK,
    "stale": Look("warn", "wait"),
    "offline": IDLE,
    "active": OK,
    "waiting to be accepted": Look("warn", "wait"),
    "quarantined": WARN,
    "revoked": Look("bad", "stop"),
    # Schedules, their occurrences and their gates.
    "enabled": OK,
    "disabled": STOPPED,
    "fired": OK,
    "missed": WARN,
    "dispatched": OK,
    "all done": OK,
    "open": OK,
    "closed": BAD,
    "frozen": Look("run", "freeze"),
    "job missing": BAD,
    "job revoked": BAD,
    "not approved": WARN,
    "bad deadline": BAD,
    "no target": WARN,
    "backing off": WARN,
    "failing": WARN,
    "late": Look("warn", "wait"),
    "error": BAD,
    "ok": OK,
    "fail": BAD,
    "degraded": WARN,
    "down": BAD,
    "nobody alive": WAIT,
    "muted": WAIT,
    "no free slot": WAIT,
    "computing target": WAIT,
    "runs on agent": IDLE,
    "outside active period": WAIT,
    "outside window": WAIT,
    "skip date": WAIT,
    "in flight": RUN,
    "approved": OK,
    "used up": STOPPED,
}


def words_of(state: str) -> str:
    """The state as people read it: `handed_out` is "handed out"."""
    return state.replace("_", " ")


def look_of(state: str) -> Look:
    """The look of a state or word; one that nobody described is neutral."""
    return _LOOKS.get(state) or _LOOKS.get(words_of(state)) or IDLE
