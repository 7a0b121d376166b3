"""Values in an agent's report, taken as well as they can be: none of these ever raises."""

import binascii
from base64 import b64decode
from datetime import UTC, datetime, timedelta
from uuid import UUID

from scheduler.rules.texts import clean_text

# PCs' clocks say anything; nothing beyond this is stored.
OLDEST, NEWEST = timedelta(days=400), timedelta(days=1)
_UUID_LENGTH = 36


def parsed_id(value: object) -> UUID | None:
    """Return the uuid in its usual spelling, or None."""
    if not isinstance(value, str) or len(value) != _UUID_LENGTH:
        return None
    try:
        return UUID(value)
    except ValueError:
        return None


def read_whole(value: object, *, least: int, most: int) -> int | None:
    """Return a whole number within bounds, or None. True is no number."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if least <= value <= most else None


def moment(value: object) -> datetime | None:
    """Return an instant with a zone, in UTC, or None."""
    if not isinstance(value, str) or len(value) > 40:  # noqa: PLR2004  # the longest ISO form
        return None
    try:
        read = datetime.fromisoformat(value)
        return read.astimezone(UTC) if read.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def within_reason(at: datetime | None, now: datetime) -> datetime | None:
    """Return an instant moved into what a PC's clock may reasonably say."""
    return None if at is None else min(max(at, now - OLDEST), now + NEWEST)


def text(value: object, *, most: int) -> str:
    """Return a text made harmless and cut; empty for what is no text."""
    return clean_text(value, most=most) if isinstance(value, str) else ""


def decoded(value: object) -> bytes:
    """Return the bytes of a base64 text; none for what is no base64."""
    if not isinstance(value, str):
        return b""
    try:
        return b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return b""
