"""From wall clocks to instants: what an expression means in a zone whose clock is changed.

Fixed times (`30 2 * * *`) happen once a day: at the end of the gap when their time is left out, at
the first pass when it comes twice. Expressions that follow the clock (`*/20 * * * *`) run whenever
the clock shows a match: not in a gap, and in both passes of a repeated stretch.
"""

from datetime import UTC, datetime, timedelta, tzinfo

from scheduler.rules.cron.branches import Walk
from scheduler.rules.zones import first_change, instants, jump_over, offset_at

SECOND = timedelta(seconds=1)
# A longer jump is not summer time but a moved date line or a clock set: nothing is made up for.
LONGEST_GAP = timedelta(hours=3)
EARLIEST = datetime(1900, 1, 1, tzinfo=UTC)
LATEST = datetime(9000, 1, 1, tzinfo=UTC)


def next_fire(
    walk: Walk, after: datetime, tz: tzinfo, *, follows_the_clock: bool
) -> datetime | None:
    """Return the first fire strictly after an aware instant, in UTC; None = never again."""
    if after.tzinfo is None:
        raise ValueError("the instant to search after needs a zone")
    if after >= LATEST:
        return None
    after = max(after, EARLIEST).astimezone(UTC).replace(microsecond=0)
    return (_by_the_clock if follows_the_clock else _fixed)(walk, after, tz)


def _fixed(walk: Walk, after: datetime, tz: tzinfo) -> datetime | None:
    wall = after.astimezone(tz).replace(tzinfo=None, fold=0)
    while (wall_found := walk.next_after(wall)) is not None:
        found = instants(wall_found, tz)
        if found:
            moment: datetime | None = found[0]
        else:
            moment, size = jump_over(wall_found, tz)
            moment = moment if size <= LONGEST_GAP else None
        # In the second pass of a repeated stretch, what is found there has run at the first.
        if moment is not None and moment > after:
            return moment
        wall = wall_found
    return None


def _by_the_clock(walk: Walk, after: datetime, tz: tzinfo) -> datetime | None:
    start, offset = after, offset_at(after, tz)
    wall = _plus(start, offset)
    found = walk.next_after(wall)
    while found is not None:
        moment = found.replace(tzinfo=UTC) - offset
        change = first_change(tz, start, moment)
        if change is None:
            return moment
        start, offset = change, offset_at(change, tz)
        earlier, wall = wall, _plus(change, offset) - SECOND
        # Nothing matches between the last start and what was found: search again only where the
        # clock went back behind that start, or the gap swallowed what was found.
        if not earlier <= wall < found:
            found = walk.next_after(wall)
    return None


def _plus(moment: datetime, offset: timedelta) -> datetime:
    return moment.replace(tzinfo=None) + offset
