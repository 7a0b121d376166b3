"""Whether an exchange comes from the machine and the start that the server knows.

An agent counts its exchanges for ever (`seq`) and its starts by the epoch that the server gave to
each. Two machines with one identity, a replayed message and a lost reply look alike at first; this
is how they are told apart.
"""

import hmac
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Session:
    """What was last heard of an agent. Epoch 0 = it has never started."""

    fingerprint: str
    epoch: int
    boot_id: str
    seq: int


@dataclass(frozen=True, slots=True)
class Greeting:
    """How an exchange introduces itself; without an epoch it is the first of a start."""

    fingerprint: str
    epoch: int | None
    boot_id: str
    seq: int


class Standing(StrEnum):
    """What an exchange is."""

    GOES_ON = "goes on"
    STARTS = "starts"  # gets a new epoch
    REPEATED = "repeated"  # the last reply was lost: the same answer again
    # A message from before the last one: its reports count, its reply will be read by nobody.
    BELATED = "belated"
    # Refused: it says that it is this agent and is not, or is not any more.
    OUTDATED = "outdated"
    STRANGER = "stranger"


REFUSED = frozenset({Standing.OUTDATED, Standing.STRANGER})


def judge(known: Session, greeting: Greeting) -> Standing:
    """Tell what the exchange is, given what was last heard."""
    if not same_machine(known.fingerprint, greeting.fingerprint):
        return Standing.STRANGER
    if greeting.epoch is None:
        return _judge_start(known, greeting)
    if greeting.epoch < known.epoch:
        return Standing.OUTDATED
    if greeting.epoch > known.epoch:
        # The server has forgotten: it came back from a backup.
        return Standing.STARTS
    return _by_number(known, greeting, Standing.GOES_ON)


def next_epoch(known: Session, greeting: Greeting) -> int:
    """Return the epoch of a new start: later than any that either side remembers."""
    return max(known.epoch, greeting.epoch or 0) + 1


def same_machine(known: str, presented: str) -> bool:
    """Answer whether two fingerprints are of one machine; none is of no machine."""
    return bool(known) and hmac.compare_digest(known.encode(), presented.encode())


def _judge_start(known: Session, greeting: Greeting) -> Standing:
    # After another boot a lower number is a machine that was set back, not an old message.
    if known.epoch == 0 or known.boot_id != greeting.boot_id:
        return Standing.STARTS
    return _by_number(known, greeting, Standing.STARTS)


def _by_number(known: Session, greeting: Greeting, later: Standing) -> Standing:
    if greeting.seq == known.seq:
        return Standing.REPEATED
    return later if greeting.seq > known.seq else Standing.BELATED
