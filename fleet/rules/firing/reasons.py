"""The one list of reasons: the tick, the explanation and the documentation share it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Reason(StrEnum):
    """How an evaluation of a schedule ended, in the order in which the gates are asked."""

    FROZEN = "frozen"
    DISABLED = "disabled"
    RUNS_ON_AGENT = "runs on agent"
    OUTSIDE_ACTIVE = "outside active period"
    SKIP_DATE = "skip date"
    OUTSIDE_WINDOW = "outside window"
    JOB_MISSING = "job missing"
    JOB_REVOKED = "job revoked"
    NOT_APPROVED = "not approved"
    BAD_DEADLINE = "bad deadline"
    NO_TARGET = "no target"
    COMPUTING_TARGET = "computing target"
    NOBODY_ALIVE = "nobody alive"
    ALL_DONE = "all done"
    BACKING_OFF = "backing off"
    IN_FLIGHT = "in flight"
    MUTED = "muted"
    NO_FREE_SLOT = "no free slot"
    DISPATCHED = "dispatched"
    # No gate: the evaluation itself failed, which stops this schedule alone.
    ERROR = "error"


ORDER: dict[Reason, int] = {reason: place for place, reason in enumerate(Reason)}

# What a person who fires a schedule by hand passes over.
IGNORED_BY_HAND = frozenset(
    {
        Reason.DISABLED,
        Reason.RUNS_ON_AGENT,
        Reason.OUTSIDE_ACTIVE,
        Reason.SKIP_DATE,
        Reason.OUTSIDE_WINDOW,
        Reason.NOBODY_ALIVE,
        Reason.ALL_DONE,
        Reason.BACKING_OFF,
        Reason.MUTED,
        Reason.NO_FREE_SLOT,
    }
)


@dataclass(frozen=True, slots=True)
class Gate:
    """What one gate says: `detail` holds the values it saw, `opens_at` when it may open."""

    reason: Reason
    is_open: bool
    detail: str = ""
    opens_at: datetime | None = None
