"""The `when` of a schedule in a form: one choice, and the texts that belong to it."""

from collections.abc import Mapping

from fleet.admin.document_fields import words

PER_PC_EVERY = "per_pc every"
PER_PC_ONCE = "per_pc once"
PER_VERSION = "per_pc once_per_version"
PER_TARGET_EVERY = "per_target every"
PER_TARGET_ONCE = "per_target once"
AT = "calendar at"
CRON = "calendar cron"
CHOICES = (
    (PER_PC_EVERY, "Each PC must have succeeded within …"),
    (PER_PC_ONCE, "Each PC once"),
    (PER_VERSION, "Each PC once for each version of the job"),
    (PER_TARGET_EVERY, "Some PC of the target must have succeeded within …"),
    (PER_TARGET_ONCE, "Some PC of the target once"),
    (AT, "At a time of day, or at one date and time"),
    (CRON, "By a cron expression"),
)
# Where the parser's paths are shown.
PATHS = {
    "when.per_pc.every": "when_every",
    "when.per_target.every": "when_every",
    "when.per_pc": "when_shape",
    "when.per_target": "when_shape",
    "when.calendar.at": "when_at",
    "when.calendar.days": "when_days",
    "when.calendar.cron": "when_cron",
    "when": "when_shape",
}


def to_fields(when: object) -> dict[str, str] | None:
    """What the fields show; None where the stored `when` is none that they can say."""
    if not isinstance(when, Mapping) or len(when) != 1:
        return None
    ((shape, value),) = when.items()
    if shape == "calendar" and isinstance(value, Mapping):
        return _calendar_fields(value)
    if value in ("once", "once_per_version"):
        return {"when_shape": f"{shape} {value}"}
    if isinstance(value, Mapping) and set(value) == {"every"}:
        return {"when_shape": f"{shape} every", "when_every": str(value["every"])}
    return None


def _calendar_fields(value: Mapping[str, object]) -> dict[str, str] | None:
    if set(value) == {"cron"}:
        return {"when_shape": CRON, "when_cron": str(value["cron"])}
    days = value.get("days", [])
    if "at" in value and set(value) <= {"at", "days"} and isinstance(days, list):
        joined = ", ".join(map(str, days))
        return {"when_shape": AT, "when_at": str(value["at"]), "when_days": joined}
    return None


def to_when(values: Mapping[str, object]) -> dict[str, object]:
    """The `when` that the fields say. Missing texts stay empty: the parser asks for them."""
    shape, _, word = str(values.get("when_shape") or PER_PC_EVERY).partition(" ")
    if shape == "calendar":
        return {"calendar": _calendar(word, values)}
    if word == "every":
        return {shape: _with({}, "every", values.get("when_every"))}
    return {shape: word}


def _calendar(word: str, values: Mapping[str, object]) -> dict[str, object]:
    if word == "cron":
        # An empty text stays, so that the parser asks for a cron and not for a time.
        return {"cron": str(values.get("when_cron") or "")}
    calendar = _with({}, "at", values.get("when_at"))
    return _with(calendar, "days", words(str(values.get("when_days") or "")))


def _with(mapping: dict[str, object], key: str, value: object) -> dict[str, object]:
    return {**mapping, key: value} if value else mapping
