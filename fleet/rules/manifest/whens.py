"""Reads `when`: exactly one of three shapes."""

from datetime import timedelta

from fleet.rules.calendar import MAX_DAYS, lower, parse_at, parse_day
from fleet.rules.problems import shown
from fleet.rules.reader import Reader
from fleet.rules.when import Calendar, PerPc, PerTarget, When
from fleet.rules.wording import closest, kind_of
from scheduler.rules import cron
from scheduler.rules.zones import zone

MOST_COOLDOWN = timedelta(days=3_653)
MAX_CRON = 512
SHAPES = ("per_pc", "per_target", "calendar")
_EXAMPLE = "when: {per_pc: {every: 6h}}"
_ELSEWHERE = {
    "on": "events are not supported: the schedule would never fire; use per_pc or calendar",
    "cron": 'write it as calendar: {cron: "0 9 * * mon-fri"}',
}


def read_when(reader: Reader) -> When:
    """When the schedule fires; a harmless placeholder where that cannot be read."""
    if not reader.has("when"):
        reader.missing("when", _EXAMPLE)
    part = reader.child("when", "per_pc, per_target or calendar")
    part.refuse(_ELSEWHERE)
    given = [shape for shape in SHAPES if part.has(shape)]
    if len(given) > 1:
        part.problem_here(f"only one of {', '.join(SHAPES)} may be set")
    elif not given and not any(part.has(key) for key in _ELSEWHERE):
        part.problem_here(f"one of {', '.join(SHAPES)} must be set, for example {_EXAMPLE}")
    found = [_read_shape(part, shape) for shape in given]
    for shape in SHAPES:
        part.raw(shape)
    part.finish()
    return found[0] if found else PerPc()


def _read_shape(part: Reader, shape: str) -> When:
    if shape == "calendar":
        return _read_calendar(part)
    if shape == "per_target":
        every, text, _ = _read_condition(part, shape, ("once",))
        return PerTarget(every, text)
    every, text, word = _read_condition(part, shape, ("once", "once_per_version"))
    return PerPc(every, per_version=word == "once_per_version", every_text=text)


def _read_condition(
    part: Reader, shape: str, known: tuple[str, ...]
) -> tuple[timedelta | None, str, str]:
    """`once` (or another word of `known`) or `{every: DURATION}`: (every, its text, word)."""
    value = part.raw(shape)
    if isinstance(value, str) and value in known:
        part.document[shape] = value
        return None, "", value
    if isinstance(value, dict):
        inner = part.child(shape, "every")
        if not inner.has("every"):
            inner.missing("every", "every: 6h")
        every = inner.duration("every", least=timedelta(), most=MOST_COOLDOWN)
        inner.finish()
        return every, str(inner.document.get("every", "")).strip(), ""
    found = shown(value) if isinstance(value, str) else kind_of(value)
    hint = closest(value, known) if isinstance(value, str) else ""
    part.problem(shape, f"must be {' or '.join(known)} or {{every: 6h}}, not {found}{hint}")
    return None, "", ""


def _read_calendar(part: Reader) -> Calendar:
    reader = part.child("calendar", "at and days, or cron")
    if reader.has("cron"):
        return _read_cron(reader)
    if not reader.has("at"):
        reader.missing("at", 'at: "09:00", or cron: "0 9 * * mon-fri"')
    at = reader.parsed("at", lambda text: (parse_at(text), text.strip())[1])
    days = reader.texts("days", parse_day, most=MAX_DAYS, numbers=True)
    reader.raw("cron")
    reader.finish()
    calendar = Calendar(at, days)
    if at is None or "days" not in reader.document:
        return calendar
    if len(at) > len("HH:MM"):
        reader.problem("days", "a date happens once and has no days; remove days or the date")
    elif message := _lowering_problem(calendar):
        reader.problem("days", message)
    return calendar


def _lowering_problem(calendar: Calendar) -> str | None:
    try:
        lower(calendar, zone("UTC"))
    except cron.CronError as error:
        return f"{shown(','.join(calendar.days))}: {error}"
    return None


def _read_cron(reader: Reader) -> Calendar:
    text = reader.parsed("cron", lambda text: (cron.parse(text), text)[1], most=MAX_CRON)
    for key in ("at", "days"):
        reader.raw(key)
        if reader.has(key):
            reader.problem(key, "stands beside cron; write one of them")
    reader.finish()
    return Calendar(cron=text)
