"""The deadline of a run by hand, as a person writes it: `4h`, or an instant."""

from datetime import datetime, timedelta

from fleet.rules.bounds import parse_bound
from fleet.rules.deadlines import LONGEST_WAIT
from scheduler.rules.durations import DurationError, format_duration, parse_duration
from scheduler.rules.zones import zone

_LEAST = timedelta(seconds=1)


class DeadlineError(ValueError):
    """The text is no deadline of a run; the message says what would be right."""


def parse_run_deadline(text: str, *, now: datetime) -> datetime:
    """The instant (UTC) until which a run may start: a duration from `now`, or an RFC 3339 time."""
    try:
        deadline = parse_bound(text, zone("UTC")) if "-" in text else now + parse_duration(text)
    except (DurationError, OverflowError) as error:
        raise DeadlineError(f"{error}; or write a date-time with its offset") from None
    except ValueError as error:
        raise DeadlineError(str(error)) from None
    if not now + _LEAST <= deadline <= now + LONGEST_WAIT:
        raise DeadlineError(
            f"{text!r:.60} is out of bounds: write 1s to {format_duration(LONGEST_WAIT)} from now"
        )
    return deadline
