"""How the state of a task looks: its tone and its icon, so that colour never stands alone."""

from dataclasses import dataclass

from scheduler.rules.health import Verdict
from scheduler.rules.states import Outcome, Phase


@dataclass(frozen=True, slots=True)
class Look:
    """`tone` is ok, bad, warn, run or idle; `icon` the name of a symbol of the page."""

    tone: str
    icon: str


OK = Look("ok", "ok")
BAD = Look("bad", "bad")
WARN = Look("warn", "warn")
RUN = Look("run", "run")
WAIT = Look("idle", "wait")
STOPPED = Look("idle", "stop")
IDLE = Look("idle", "idle")
UNKNOWN = Look("warn", "unknown")

LOOKS: dict[str, Look] = {
    Phase.WAITING: WAIT,
    Phase.RETRYING: Look("warn", "wait"),
    Phase.SCHEDULED: WAIT,
    Phase.DUE: WAIT,
    Phase.RUNNING: RUN,
    Phase.FINISHED: OK,
    Phase.FAILED: BAD,
    Phase.CANCELLED: STOPPED,
    Phase.QUARANTINED: WARN,
    Outcome.SUCCEEDED: OK,
    Outcome.RETRYING: WARN,
    Outcome.FAILED: BAD,
    Outcome.CRASHED: BAD,
    Outcome.MISSED: WARN,
    Outcome.NOT_RUN: WARN,
    Verdict.OK: OK,
    Verdict.DEGRADED: WARN,
    Verdict.DOWN: BAD,
}


def look_of(state: str) -> Look:
    """The look of a phase, an outcome or a verdict; any other word is neutral."""
    return LOOKS.get(state, IDLE)
