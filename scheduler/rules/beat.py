"""What a row of django-celery-beat becomes: a request of kind `celery.send`, or why it cannot."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from scheduler.rules.cron import CronError, parse, parse_for_save
from scheduler.rules.payload import require_storable
from scheduler.rules.texts import require_clean
from scheduler.rules.timing import Recurrence
from scheduler.rules.zones import zone

SECOND = timedelta(seconds=1)
# The task that drives Kanade's own ticks; it stays with beat.
TICK = "kanade.tick"


@dataclass(frozen=True, slots=True)
class Crontab:
    """Five fields as typed, in cron's order, and as celery reads them; both days must match."""

    typed: tuple[str, str, str, str, str]
    numbers: tuple[frozenset[int], ...]
    tz: str


@dataclass(frozen=True, slots=True)
class Interval:
    """A length of time between two runs."""

    every: timedelta


@dataclass(frozen=True, slots=True)
class Clocked:
    """One moment."""

    at: datetime


@dataclass(frozen=True, slots=True)
class Unknown:
    """A trigger that is not carried over, and what is to be said of it."""

    why: str


Trigger = Crontab | Interval | Clocked | Unknown


@dataclass(frozen=True, slots=True)
class BeatRow:
    """A PeriodicTask; its arguments are the JSON texts that it stores."""

    name: str
    task: str
    trigger: Trigger
    enabled: bool = True
    args: str = "[]"
    kwargs: str = "{}"
    headers: str = "{}"
    # queue, exchange, routing_key and priority of the message, those that are set.
    routing: Mapping[str, object] = field(default_factory=dict)
    expires: datetime | None = None
    expire_seconds: int | None = None
    one_off: bool = False
    start_time: datetime | None = None
    last_run_at: datetime | None = None
    total_run_count: int = 0
    date_changed: datetime | None = None


class Verdict(StrEnum):
    """What becomes of a row."""

    IMPORT = "import"
    # There is nothing to carry over.
    LEAVE = "leave"
    CANNOT = "cannot"


@dataclass(frozen=True, slots=True)
class Ask:
    """The request that a row becomes. `at` None is the first occurrence of its cron."""

    key: str
    input: dict[str, object]
    at: datetime | None
    cron: str | None = None
    tz: str = "UTC"


@dataclass(frozen=True, slots=True)
class Step:
    """What becomes of one row, in words, and the request if it is carried over."""

    name: str
    verdict: Verdict
    words: str
    ask: Ask | None = None


def plan(row: BeatRow, *, now: datetime) -> Step:
    """Decide what becomes of a row at `now`. No first run is at or before `now`: beat had those."""
    idle = _nothing_to_do(row, now=now)
    if idle:
        return Step(row.name, Verdict.LEAVE, idle)
    try:
        message = _message(row)
        ask, words = _ask(row, message, now=now)
        require_clean(row.name)
        require_storable(message, "its message")
    except ValueError as error:
        return Step(row.name, Verdict.CANNOT, str(error))
    return Step(row.name, Verdict.IMPORT, words, ask)


def _nothing_to_do(row: BeatRow, *, now: datetime) -> str:
    if row.task == TICK:
        return "drives Kanade's ticks"
    if not row.enabled:
        return "is disabled"
    if row.one_off and row.total_run_count > 0:
        return "was to run once, and has"
    if row.expires is not None and row.expires <= now:
        return f"expired at {row.expires.isoformat()}"
    return ""


def _message(row: BeatRow) -> dict[str, object]:
    args, kwargs = _read(row.args, "args", list), _read(row.kwargs, "kwargs", dict)
    headers = _read(row.headers or "{}", "headers", dict)
    assert isinstance(headers, dict)  # just read as one
    options = {**row.routing, "headers": {**headers, "periodic_task_name": row.name}}
    if row.expire_seconds is not None:
        options["expires"] = row.expire_seconds
    message: dict[str, object] = {
        "task": row.task,
        "args": args,
        "kwargs": kwargs,
        "options": options,
    }
    if row.expires is not None:
        message["until"] = row.expires.isoformat()
    return message


def _read(text: str, what: str, kind: type[list[object] | dict[str, object]]) -> object:
    try:
        value: object = json.loads(text or ("[]" if kind is list else "{}"))
    except ValueError as error:
        raise ValueError(f"its {what} are no JSON: {error}") from error
    if not isinstance(value, kind):
        shape = "a list" if kind is list else "an object"
        raise ValueError(f"its {what} are {shape} in JSON, not {text:.60}")
    return value


def _ask(row: BeatRow, message: dict[str, object], *, now: datetime) -> tuple[Ask, str]:
    match row.trigger:
        case Crontab() as crontab:
            return _recurring(row, crontab, message, now=now)
        case Interval(every=every):
            return _repeated(row, every, message, now=now)
        case Clocked(at=at):
            if at <= now:
                raise ValueError(
                    f"its time {at.isoformat()} is past, so beat sends it or has sent it"
                )
            return Ask(row.name, message, at), f"once at {at.isoformat()}"
        case Unknown(why=why):
            raise ValueError(why)


def _recurring(
    row: BeatRow, crontab: Crontab, message: dict[str, object], *, now: datetime
) -> tuple[Ask, str]:
    text = cron_text(crontab)
    # Celery's day fields must both match.
    parse_for_save(text, now=now, tz=zone(crontab.tz), day_rule="and")
    starts = row.start_time if row.start_time is not None and row.start_time > now else None
    after = now if starts is None else starts - timedelta(microseconds=1)
    first = Recurrence(text, crontab.tz, "and").next_after(after)
    if first is None:
        raise ValueError("it never fires after its start time")
    if row.one_off:
        return Ask(row.name, message, first), f"once at {first.isoformat()} ({text} {crontab.tz})"
    words = f"{text} {crontab.tz}, both day fields must match, first at {first.isoformat()}"
    at = first if starts is not None else None
    return Ask(row.name, message, at, text, crontab.tz), words


def _repeated(
    row: BeatRow, every: timedelta, message: dict[str, object], *, now: datetime
) -> tuple[Ask, str]:
    if every < SECOND or every % SECOND:
        raise ValueError(f"every {every} is no whole number of seconds")
    if row.start_time is not None and row.start_time > now:
        first = row.start_time
    else:
        first = next_of(row.last_run_at or row.start_time or row.date_changed or now, every, now)
    if row.one_off:
        return Ask(row.name, message, first), f"once at {first.isoformat()}"
    seconds = every // SECOND
    message |= {"every": seconds, "anchor": first.isoformat()}
    return Ask(row.name, message, first), f"every {seconds} s, first at {first.isoformat()}"


def next_of(anchor: datetime, every: timedelta, now: datetime) -> datetime:
    """Return the first time after `now` that is a whole number of `every` away from `anchor`."""
    return anchor + ((now - anchor) // every + 1) * every


def cron_text(crontab: Crontab) -> str:
    """Return the expression; a field that means the same to both stays as it was typed."""
    places = zip(crontab.typed, crontab.numbers, range(5), strict=True)
    return " ".join(_field(typed, numbers, place) for typed, numbers, place in places)


_FULL: Sequence[int] = (60, 24, 31, 12, 7)


def _field(typed: str, numbers: frozenset[int], place: int) -> str:
    text = "".join(typed.split())
    if _numbers(text, place) == numbers:
        return text
    if len(numbers) == _FULL[place]:
        return "*"
    return ",".join(map(str, sorted(numbers)))


def _numbers(text: str, place: int) -> frozenset[int] | None:
    """Return what our own grammar reads in one field."""
    texts = ["*"] * 5
    texts[place] = text
    try:
        found = parse(" ".join(texts)).fields
    except CronError:
        return None
    fields = (found.minutes, found.hours, found.days.plain, found.months, found.weekdays.plain)
    return fields[place]
