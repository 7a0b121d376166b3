"""What a recurrence means for people: its words, its next fires, how often a day."""

from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from zoneinfo import ZoneInfo

from scheduler.rules.cron import CronError, parse
from scheduler.rules.timing import Recurrence
from scheduler.rules.zones import ZoneError, zone

FIRES = 5


@dataclass(frozen=True, slots=True)
class Forecast:
    """A recurrence explained at one moment. `fires` are in UTC, `zone` is the one it is kept in.

    With a `problem` it cannot be read, and there is nothing else to say.
    """

    words: str = ""
    rule: str = ""
    fires: tuple[datetime, ...] = ()
    zone: ZoneInfo | None = None
    per_day: int = 0
    warnings: tuple[str, ...] = ()
    problem: str = ""


def forecast(recurrence: Recurrence, *, now: datetime, count: int = FIRES) -> Forecast:
    """Explain a recurrence that is stored, or about to be; an unreadable one says why."""
    try:
        expression = parse(recurrence.cron, day_rule=recurrence.day_rule)
        tz = zone(recurrence.tz)
    except (CronError, ZoneError) as error:
        return Forecast(problem=str(error))
    return Forecast(
        words=expression.describe(),
        rule=expression.rule(),
        fires=tuple(islice(expression.fires(now, tz), count)),
        zone=tz,
        per_day=expression.per_day(tz, now),
        warnings=expression.warnings(tz, now),
    )
