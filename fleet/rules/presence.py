"""The word for a PC in lists and on the dashboard."""

from datetime import datetime, timedelta
from enum import StrEnum

from fleet.rules.liveness import is_alive

# A PC that was heard today is late; one that was not is away.
STALE_FOR = timedelta(hours=24)


class Presence(StrEnum):
    """How long ago a PC was heard."""

    ONLINE = "online"
    STALE = "stale"
    OFFLINE = "offline"


def presence(last_seen_at: datetime | None, *, now: datetime) -> Presence:
    """Online within two minutes, stale within a day (both bounds included), else offline."""
    if is_alive(last_seen_at, now=now):
        return Presence.ONLINE
    if last_seen_at is not None and last_seen_at >= now - STALE_FOR:
        return Presence.STALE
    return Presence.OFFLINE
