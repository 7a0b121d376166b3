"""Which values every database can store as JSON and give back unchanged."""

import json

MOST_BYTES = 262_144


class PayloadError(ValueError):
    """A value cannot be stored; the message says what is wrong."""


def require_storable(value: object, what: str) -> object:
    """Return `value` as it will be read back; raise PayloadError for what JSON cannot carry.

    NUL and lone surrogates are refused: one database takes them, another does not.
    """
    if value is None:
        return None
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise PayloadError(f"{what} is not JSON: {error}") from error
    if len(text) > MOST_BYTES:
        raise PayloadError(f"{what} has {len(text)} bytes as JSON; at most {MOST_BYTES} are kept")
    # Read back, so that what a body sees never depends on who else has run it.
    stored: object = json.loads(text)
    if "\\u" in text:
        _refuse_texts(stored, what)
    return stored


def _refuse_texts(value: object, what: str) -> None:
    if isinstance(value, str):
        if "\0" in value:
            raise PayloadError(f"{what} holds a NUL character")
        if any("\ud800" <= char <= "\udfff" for char in value):
            raise PayloadError(f"{what} holds half a surrogate pair")
    elif isinstance(value, list):
        for item in value:
            _refuse_texts(item, what)
    elif isinstance(value, dict):
        for key, item in value.items():
            _refuse_texts(key, what)
            _refuse_texts(item, what)
