"""Until when a command may start: checked at hand-out, and by the agent just before the start."""

from datetime import datetime, timedelta

# Calendar and manual commands wait this long for a PC that is off.
LONGEST_WAIT = timedelta(days=7)
# A deadline still allows its own instant, the close of a window does not.
_BEFORE_CLOSE = timedelta(milliseconds=1)


def is_past(deadline_at: datetime | None, now: datetime) -> bool:
    """Whether it is too late to start. The deadline itself is the last allowed instant."""
    return deadline_at is not None and now > deadline_at


def wait_for_start(
    starting_deadline: timedelta | None, *, suppression: timedelta | None
) -> timedelta:
    """How long a command may wait, counted from the moment from which it may start.

    Without a deadline of its own, one of a reconcile schedule waits as long as it mutes its
    machine (`suppression`), after which the schedule asks again; others (None) wait a week.
    """
    if starting_deadline is not None:
        return starting_deadline
    return LONGEST_WAIT if suppression is None else suppression


def deadline_of(startable_at: datetime, *, wait: timedelta, closes_at: datetime | None) -> datetime:
    """The last instant at which a command may start that may start from `startable_at` on.

    `closes_at` is when the open time ends (window, skip date, active period); None = never.
    """
    deadline = startable_at + wait
    if closes_at is None:
        return deadline
    return min(deadline, closes_at - _BEFORE_CLOSE)
