"""How far apart two moments are, in words for people."""

from datetime import datetime, timedelta

MINUTE, HOUR, DAY = 60, 3600, 86400
_JUST_NOW = 5


def span_words(span: timedelta) -> str:
    """The length in one or two units: "3 min", "2 h 5 min", "4 d"; never negative."""
    seconds = abs(int(span.total_seconds()))
    if seconds < MINUTE:
        return f"{seconds} s"
    if seconds < HOUR:
        return f"{seconds // MINUTE} min"
    if seconds < DAY:
        hours, minutes = seconds // HOUR, seconds % HOUR // MINUTE
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = seconds // DAY, seconds % DAY // HOUR
    # Past a week nobody counts hours.
    return f"{days} d {hours} h" if hours and days < 7 else f"{days} d"  # noqa: PLR2004


def relative(moment: datetime, *, now: datetime) -> str:
    """Where the moment lies, seen from `now`: "3 min ago", "in 2 h", "now"."""
    span = moment - now
    if abs(span) < timedelta(seconds=_JUST_NOW):
        return "now"
    return f"in {span_words(span)}" if span > timedelta() else f"{span_words(span)} ago"


def duration_words(milliseconds: int | None) -> str:
    """A measured run time: "0.4 s", "12.3 s", "4 min 10 s"; a dash where nobody measured."""
    if milliseconds is None:
        return "\N{EN DASH}"
    seconds = milliseconds / 1000
    if seconds < MINUTE:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), MINUTE)
    if minutes < MINUTE:
        return f"{minutes} min {rest} s"
    return f"{minutes // MINUTE} h {minutes % MINUTE} min"
