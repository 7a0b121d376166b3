"""Whether a held command may start now, must wait, or will never start."""

from dataclasses import dataclass
from datetime import datetime

from fleet.agent.checks import expired_reason
from fleet.agent.commands import Command, Outcome
from fleet.rules.deadlines import is_past


@dataclass(frozen=True, slots=True)
class Start:
    """It may start now."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Not yet; `until` is when to look again by the server's time, None when an event must help."""

    why: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class End:
    """It will not start."""

    outcome: Outcome
    reason: str


Step = Start | Wait | End


def decide(
    command: Command,
    *,
    not_before: datetime | None,
    now: datetime | None,
    forbidden: str | None,
    killed: bool,
) -> Step:
    """Judge one start of a command at the server's time `now` (None: unknown).

    `not_before` is the end of its jitter or of the pause before a retry, `forbidden` what the gate
    says. A kill counts in every phase, and the deadline while something else forbids the start.
    """
    if killed:
        return End(Outcome.KILLED, "killed on request before it started")
    if now is not None and is_past(command.deadline_at, now):
        return End(Outcome.EXPIRED, expired_reason(command.deadline_at, now))
    if forbidden is not None or now is None:
        return Wait(forbidden or "the server's time is not known")
    if not_before is not None and now < not_before:
        return Wait("its time has not come", not_before)
    return Start()
