"""The last gate: may a command go out to its agent, now that the agent asks?

All was decided when the command was written, and much may have changed since. The gate is closed
unless everything it asks about is known to be right.
"""

from dataclasses import dataclass
from datetime import datetime

from fleet.rules.command_states import CommandState
from fleet.rules.deadlines import is_past

STOPPED = "stopped before it started"
JOB_REVOKED = "job revoked"
OTHER_VERSION = "another version of the job is current"
DEADLINE_PASSED = "its deadline passed before it was handed out"
NOT_APPROVED = "not approved"
NOT_LIVE = "its execution is not live"
FROZEN = "frozen"


@dataclass(frozen=True, slots=True)
class Offer:
    """What there is to know of a command that would go out. `is_current` compares what runs."""

    deadline_at: datetime
    is_stopped: bool
    is_revoked: bool
    is_current: bool
    is_approved: bool
    is_live: bool
    overrides_freeze: bool


@dataclass(frozen=True, slots=True)
class Give:
    """It goes out."""


@dataclass(frozen=True, slots=True)
class Hold:
    """It stays where it is and is asked about again."""

    reason: str


@dataclass(frozen=True, slots=True)
class End:
    """It will never go out."""

    state: CommandState
    reason: str


def judge(offer: Offer, *, frozen: bool, now: datetime) -> Give | Hold | End:
    """Tell what becomes of a command at its hand-out, the first one or a further one."""
    ending = _ending(offer, now)
    if ending is not None:
        return ending
    if not offer.is_approved:
        return Hold(NOT_APPROVED)
    if not offer.is_live:
        return Hold(NOT_LIVE)
    # A freeze holds and ends nothing: after the thaw it goes out, if its deadline allows.
    if frozen and not offer.overrides_freeze:
        return Hold(FROZEN)
    return Give()


def _ending(offer: Offer, now: datetime) -> End | None:
    if offer.is_stopped:
        return End(CommandState.CANCELLED, STOPPED)
    if offer.is_revoked:
        return End(CommandState.SKIPPED, JOB_REVOKED)
    # What is not approved yet is no other version: it may become the current one.
    if offer.is_approved and not offer.is_current:
        return End(CommandState.SKIPPED, OTHER_VERSION)
    if is_past(offer.deadline_at, now):
        return End(CommandState.EXPIRED, DEADLINE_PASSED)
    return None
