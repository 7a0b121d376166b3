"""Why one agent is, or is not, sent the job: a sentence for people."""

from datetime import datetime

from fleet.rules.firing.facts import Candidate
from fleet.rules.firing.reasons import Reason
from fleet.rules.firing.standing import Standing

_PLAIN = {
    Reason.IN_FLIGHT: "a command of the job is open on it",
    Reason.NO_FREE_SLOT: "due, and no slot of max_concurrent is free for it",
    Reason.DISPATCHED: "due: it is sent the job",
}


def sentence(agent: Candidate, stands: Standing, *, last_seen_at: datetime | None = None) -> str:
    """What stops an agent, with the values behind it; times are in UTC."""
    match stands.reason:
        case Reason.NOBODY_ALIVE:
            return f"offline since {_at(last_seen_at)}" if last_seen_at else "never heard"
        case Reason.ALL_DONE:
            until = f"until {_at(stands.until)}" if stands.until else "for ever"
            did = f" (succeeded {_at(agent.success.at)})" if agent.success else ""
            return f"done {until}{did}"
        case Reason.BACKING_OFF:
            times = "once" if agent.failures == 1 else f"{agent.failures} times in a row"
            return f"failed {times}, next try {_at(stands.until)}"
        case Reason.MUTED:
            return f"sent {_at(agent.last_dispatched_at)}, muted until {_at(stands.until)}"
        case reason:
            return _PLAIN.get(reason, reason.value)


def _at(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC" if moment is not None else "then"
