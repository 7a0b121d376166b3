"""Which of the occurrences that nobody could run still run."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import islice

NextAfter = Callable[[datetime], datetime | None]

# Up to this late is on time, for whatever recurs; half the interval for what recurs rarely.
LEAST_GRACE = timedelta(seconds=90)
MOST_GRACE = timedelta(hours=1)
# Of all missed occurrences at most this many run, the newest ones.
MOST_CATCH_UPS = 100
# Counting stops here: "1000 or more".
MOST_COUNTED = 1000
INSTANT = timedelta(microseconds=1)


class Misfire(StrEnum):
    """What happens to occurrences that passed while no runner could take them."""

    SKIP = "skip"
    ONCE = "once"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class RunIt:
    """Run for `occurrence_at`; `missed` earlier ones are given up."""

    occurrence_at: datetime
    missed: int = 0


@dataclass(frozen=True, slots=True)
class SkipIt:
    """Run nothing now, go on at `next_at` (None = it never fires again)."""

    next_at: datetime | None
    missed: int


def grace_of(occurrence_at: datetime, next_after: NextAfter) -> timedelta:
    """Return how late an occurrence may start and still count as on time."""
    following = next_after(occurrence_at)
    if following is None:
        return LEAST_GRACE
    return max(LEAST_GRACE, min((following - occurrence_at) / 2, MOST_GRACE))


def decide(
    policy: Misfire, occurrence_at: datetime, next_after: NextAfter, *, now: datetime
) -> RunIt | SkipIt:
    """Decide about an occurrence that is due at `now`, however late."""
    grace = grace_of(occurrence_at, next_after)
    if now - occurrence_at <= grace:
        return RunIt(occurrence_at)
    first_ones = list(islice(_between(occurrence_at - INSTANT, next_after, now), MOST_COUNTED))
    missed = len(first_ones)
    newest = first_ones[-MOST_CATCH_UPS:]
    if missed == MOST_COUNTED:
        newest = last_occurrences(occurrence_at, next_after, now=now, most=MOST_CATCH_UPS)
    if policy is Misfire.ALL:
        return RunIt(newest[0], missed=missed - len(newest))
    if policy is Misfire.ONCE or now - newest[-1] <= grace:
        return RunIt(newest[-1], missed=missed - 1)
    return SkipIt(next_after(now), missed=missed)


def last_occurrences(
    first: datetime, next_after: NextAfter, *, now: datetime, most: int
) -> list[datetime]:
    """Return the newest `most` occurrences of [first, now], oldest first; `first` is one.

    The span looked at doubles until it holds enough, so years of minutes cost no more than a day.
    """
    span = timedelta(minutes=1)
    while True:
        start = max(first - INSTANT, now - span)
        found = list(_between(start, next_after, now))
        if len(found) >= most or start < first:
            return found[-most:]
        span *= 2


def _between(after: datetime, next_after: NextAfter, until: datetime) -> Iterator[datetime]:
    at = next_after(after)
    while at is not None and at <= until:
        yield at
        at = next_after(at)
