"""Who still has to succeed: a success counts for a time, for ever, or for one version."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from fleet.rules.when import Calendar, PerPc, When

# A recorded time this far ahead of the clock was written by a wrong clock and proves nothing;
# less than that is ordinary skew.
LEEWAY = timedelta(minutes=5)
# Since when something is due that has never happened.
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Success:
    """The latest success of a job on one machine: when it ended, and of which version."""

    at: datetime
    version: str = ""


def armed_from(
    when: When, success: Success | None, *, version: str, now: datetime
) -> datetime | None:
    """From when on another success is wanted; LONG_AGO = always was, None = never again.

    `version` is the job's current one. Calendars do not ask.
    """
    if isinstance(when, Calendar) or success is None:
        return LONG_AGO
    if isinstance(when, PerPc) and when.per_version:
        return None if success.version == version else LONG_AGO
    if when.every is None:
        return None
    # A clock that was once in 2036 must not stop a job for ten years.
    if success.at > now + LEEWAY:
        return LONG_AGO
    return min(success.at, now) + when.every


def is_armed(when: When, success: Success | None, *, version: str, now: datetime) -> bool:
    """Whether another success is wanted now; the bound itself counts."""
    wanted = armed_from(when, success, version=version, now=now)
    return wanted is not None and wanted <= now


def latest(successes: Iterable[Success | None]) -> Success | None:
    """The newest of several, in whatever order they come."""
    known = [success for success in successes if success is not None]
    return max(known, key=lambda success: success.at, default=None)
