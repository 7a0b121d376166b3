"""Typed values out of JSON objects that the server sent or the agent stored."""

from collections.abc import Mapping
from datetime import UTC, datetime

Object = Mapping[str, object]


class FieldError(ValueError):
    """A value is missing or of the wrong kind; the message names its key."""


def text(source: Object, key: str) -> str:
    """The text under `key`."""
    value = source.get(key)
    if not isinstance(value, str):
        raise FieldError(f"{key}: a text is needed")
    return value


def optional_text(source: Object, key: str) -> str | None:
    """The text under `key`, None where it is null or missing."""
    return None if source.get(key) is None else text(source, key)


def whole(source: Object, key: str, *, least: int, most: int) -> int:
    """The whole number under `key`, inside its bounds."""
    value = source.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise FieldError(f"{key}: a whole number is needed")
    if not least <= value <= most:
        raise FieldError(f"{key}: {value} is not between {least} and {most}")
    return value


def flag(source: Object, key: str) -> bool:
    """The truth value under `key`."""
    value = source.get(key)
    if not isinstance(value, bool):
        raise FieldError(f"{key}: true or false is needed")
    return value


def moment(source: Object, key: str) -> datetime:
    """The instant (aware, UTC) under `key`."""
    written = text(source, key)
    try:
        value = datetime.fromisoformat(written)
    except ValueError as error:
        raise FieldError(f"{key}: {written[:40]!r} is no time") from error
    if value.tzinfo is None:
        raise FieldError(f"{key}: {written[:40]!r} says no zone")
    try:
        return value.astimezone(UTC)
    except OverflowError as error:
        raise FieldError(f"{key}: {written[:40]!r} is out of range") from error


def optional_moment(source: Object, key: str) -> datetime | None:
    """The instant under `key`, None where it is null or missing."""
    return None if source.get(key) is None else moment(source, key)


def child(source: Object, key: str) -> dict[str, object]:
    """The object under `key`."""
    value = source.get(key)
    if not isinstance(value, dict):
        raise FieldError(f"{key}: an object is needed")
    return value


def items(source: Object, key: str) -> list[object]:
    """The list under `key`."""
    value = source.get(key)
    if not isinstance(value, list):
        raise FieldError(f"{key}: a list is needed")
    return value
