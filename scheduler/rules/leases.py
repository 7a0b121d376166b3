"""Is a claim abandoned, and what a lost one means for the task.

A lease is (task, token); its holder counts `beat` up. Nobody compares clocks of two machines: a
runner frees a lease when its own monotonic clock saw the same token and beat for LEASE seconds.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta

# Seconds.
LEASE = 30.0
BEAT_EVERY = 10.0
SCAN_EVERY = 2.0
# A holder that could not beat for this long starts nothing more: others may free its leases.
MARGIN = 5.0
# What one look at the database can judge by: no beat for this long on the database's clock.
SILENCE = timedelta(seconds=60)

MOST_CRASHES = 3
# The wait after a loss, by the crashes counted so far.
PAUSES = (timedelta(0), timedelta(0), timedelta(seconds=30))
# A busy runner holds back for a waiting suspect this long, then leaves it to an idle moment.
MOST_HOLDING_BACK = 30.0


@dataclass(frozen=True, slots=True)
class Lease:
    """What is seen of a held task from outside."""

    task_id: int
    token: int
    beat: int
    runner_id: int


@dataclass(slots=True)
class Watch:
    """What one runner has seen of all leases, by its own monotonic clock."""

    _since: dict[Lease, float] = field(default_factory=dict)

    def abandoned(self, seen: Iterable[Lease], *, at: float) -> list[Lease]:
        """Note the leases seen at `at` seconds; return those that stood still for LEASE."""
        self._since = {lease: self._since.get(lease, at) for lease in seen}
        return [lease for lease, since in self._since.items() if at - since >= LEASE]


@dataclass(frozen=True, slots=True)
class Loss:
    """What a lost lease does to its task. `pause` is None when it is quarantined."""

    suspect: bool
    crash_count: int
    pause: timedelta | None


def after_loss(*, started: bool, suspect: bool, only_one: bool, crash_count: int) -> Loss:
    """Judge a task whose lease was lost.

    A body that had not started is innocent. One that ran beside others may be: it runs alone next.
    One that was the `only_one` running is counted; MOST_CRASHES in a row are too many.
    """
    if not started:
        return Loss(suspect=suspect, crash_count=crash_count, pause=timedelta(0))
    count = crash_count + 1 if suspect or only_one else crash_count
    if count >= MOST_CRASHES:
        return Loss(suspect=True, crash_count=count, pause=None)
    return Loss(suspect=True, crash_count=count, pause=PAUSES[count])


def may_still_start(last_beat: float, *, at: float) -> bool:
    """Whether a holder that last beat at `last_beat` may begin one more body at `at` seconds."""
    return at - last_beat < LEASE - MARGIN


def holds_back(seen_since: float | None, *, at: float) -> bool:
    """Whether a busy runner that saw a due suspect at `seen_since` claims nothing else."""
    return seen_since is not None and at - seen_since < MOST_HOLDING_BACK
