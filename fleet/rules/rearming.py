"""When a machine is due again: the one formula behind the stored due times."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from fleet.rules.cooldown import LEEWAY, LONG_AGO, Success, armed_from
from fleet.rules.failing import backs_off_until
from fleet.rules.when import When


@dataclass(frozen=True, slots=True)
class Terms:
    """What a schedule and its job say about all their machines."""

    when: When
    version: str
    window: timedelta
    backs_off: bool = True


def due_again(
    terms: Terms,
    *,
    success: Success | None,
    last_dispatched_at: datetime | None,
    failures: int = 0,
    last_failed_at: datetime | None = None,
    now: datetime,
) -> datetime | None:
    """From when on the machine is wanted, provided that nothing of the job is open on it.

    None = never again. The latest of: the end of its cooldown, of the pause after its failures,
    and of the muting by its last dispatch.
    """
    wanted_from = armed_from(terms.when, success, version=terms.version, now=now)
    if wanted_from is None:
        return None
    ends = [wanted_from]
    pause_ends = backs_off_until(failures, last_failed_at, window=terms.window)
    if terms.backs_off and pause_ends is not None:
        ends.append(pause_ends)
    # A mark far in the future was set by a wrong clock and does not count.
    if last_dispatched_at is not None and last_dispatched_at <= now + LEEWAY:
        ends.append(last_dispatched_at + terms.window)
    return max(ends, default=LONG_AGO)
