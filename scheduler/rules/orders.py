"""What may be asked of the scheduler: arguments in, a checked order out."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from scheduler.rules.cron import CronError, parse_for_save
from scheduler.rules.fire import Retry
from scheduler.rules.graph import distinct
from scheduler.rules.misfire import Misfire
from scheduler.rules.payload import require_storable
from scheduler.rules.requests import Wanted
from scheduler.rules.texts import require_clean
from scheduler.rules.timing import Recurrence, require_moment
from scheduler.rules.zones import zone

LONGEST_KIND, LONGEST_KEY, LONGEST_QUEUE, LONGEST_CRON = 200, 500, 100, 512
LOWEST_PRIORITY, HIGHEST_PRIORITY = -100, 100


class OrderError(ValueError):
    """A request that makes no sense; the message says what would, `field` which argument it is."""

    def __init__(self, message: str, field: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class Order:
    """A checked request: for which key, what, and after which tasks."""

    kind: str
    key: str | None
    wanted: Wanted
    depends_on: tuple[int, ...] = ()
    require_success: bool = False


def make_order(
    kind: str,
    *,
    now: datetime,
    key: str | None = None,
    input: object = None,
    at: datetime | None = None,
    after: timedelta | float | None = None,
    cron: str | None = None,
    tz: str = "UTC",
    day_rule: str = "or",
    retry: Retry | None = None,
    depends_on: Iterable[int] = (),
    require_success: bool = False,
    run_on_startup: bool = False,
    misfire: str = Misfire.ONCE,
    priority: int = 0,
    queue: str = "default",
    coalesce: bool = False,
) -> Order:
    """Check the arguments of a request; raise OrderError or another ValueError."""
    recurrence = require_recurrence(cron, tz=tz, day_rule=day_rule, now=now) if cron else None
    if cron is not None and recurrence is None:
        raise OrderError(
            "a cron expression is not empty; leave it out for a task that runs once", "cron"
        )
    if recurrence is not None and key is None:
        raise OrderError("a recurring task needs a key, or each start would add another one", "key")
    if run_on_startup and recurrence is None:
        raise OrderError(
            "run_on_startup is for recurring tasks; give a cron or leave it out", "run_on_startup"
        )
    if retry is not None and not isinstance(retry, Retry):
        raise OrderError(f"retry is a Retry, not {retry!r:.40}", "retry")
    wanted = Wanted(
        input=require_storable(input, "the input"),
        queue=require_name(queue, "queue", LONGEST_QUEUE),
        priority=_priority(priority),
        retry=retry,
        recurrence=recurrence,
        misfire=_misfire(misfire),
        at=_moment(at, after, now=now),
        run_on_startup=run_on_startup,
        coalesce=coalesce,
    )
    return Order(
        kind=require_name(kind, "kind", LONGEST_KIND),
        key=None if key is None else _key(key),
        wanted=wanted,
        depends_on=distinct(depends_on),
        require_success=require_success,
    )


def require_recurrence(cron: str, *, tz: str, day_rule: str, now: datetime) -> Recurrence:
    """Return a recurrence that fires again after `now`; raise CronError or ZoneError otherwise."""
    if len(cron) > LONGEST_CRON:
        raise CronError(f"a cron expression has at most {LONGEST_CRON} characters")
    parse_for_save(cron, now=now, tz=zone(tz), day_rule=day_rule)
    return Recurrence(cron, tz, day_rule)


def require_name(text: object, field: str, most: int) -> str:
    """Return the name; raise OrderError unless it is a clean text of 1 to `most` characters."""
    if not isinstance(text, str) or not 1 <= len(text) <= most:
        raise OrderError(f"a {field} is named by 1 to {most} characters, not {text!r:.60}", field)
    return require_clean(text)


def _key(key: object) -> str:
    if not isinstance(key, str) or len(key) > LONGEST_KEY:
        raise OrderError(
            f"a key is a text of at most {LONGEST_KEY} characters, not {key!r:.60}", "key"
        )
    return require_clean(key)


def _priority(priority: object) -> int:
    if (
        isinstance(priority, bool)
        or not isinstance(priority, int)
        or not LOWEST_PRIORITY <= priority <= HIGHEST_PRIORITY
    ):
        raise OrderError(
            f"a priority is a whole number from {LOWEST_PRIORITY} to {HIGHEST_PRIORITY}, "
            f"not {priority!r:.40}",
            "priority",
        )
    return priority


def _misfire(misfire: str) -> Misfire:
    try:
        return Misfire(misfire)
    except ValueError as error:
        message = f"misfire is skip, once or all, not {misfire!r:.40}"
        raise OrderError(message, "misfire") from error


def _moment(
    at: datetime | None, after: timedelta | float | None, *, now: datetime
) -> datetime | None:
    if at is not None and after is not None:
        raise OrderError("give a time (at) or a delay (after), not both", "after")
    if after is None:
        require_moment(at, "at")
        return at
    try:
        delay = after if isinstance(after, timedelta) else timedelta(seconds=after)
        moment = now + delay
    except (TypeError, ValueError, OverflowError) as error:
        message = f"a delay is a timedelta or seconds, not {after!r:.40}"
        raise OrderError(message, "after") from error
    require_moment(moment, "now + after")
    return moment
