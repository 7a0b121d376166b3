"""When a PC counts as alive: one predicate for the tick, the pages and the alerts."""

from datetime import datetime, timedelta

ALIVE_FOR = timedelta(minutes=2)


def is_alive(last_seen_at: datetime | None, *, now: datetime) -> bool:
    """Answer whether a machine was heard within the last two minutes, the bound included."""
    return last_seen_at is not None and last_seen_at >= now - ALIVE_FOR
