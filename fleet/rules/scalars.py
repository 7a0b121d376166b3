"""What a plain scalar means in YAML 1.2: `on`, `12:30` and `2026-07-01` are text, `010` is ten."""

import re

_NULL = {"", "~", "null", "Null", "NULL"}
_TRUE = {"true", "True", "TRUE"}
_FALSE = {"false", "False", "FALSE"}
INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
# Longer than any number that is stored, shorter than what takes time to convert.
_LONGEST_NUMBER = 400
_BASES = {"0o": 8, "0x": 16}


class ScalarError(ValueError):
    """The number is too long to be read."""


def plain_value(text: str) -> str | int | float | bool | None:
    """The value of an unquoted scalar by YAML 1.2's core schema."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    is_integer = INTEGER.fullmatch(text)
    if not is_integer and not FLOAT.fullmatch(text):
        return text
    if len(text) > _LONGEST_NUMBER:
        raise ScalarError("is a number of too many digits; write it as text in quotes")
    if is_integer:
        base = _BASES.get(text[:2], 10)
        return int(text[2:] if base != 10 else text, base)  # noqa: PLR2004  # ten has no prefix
    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
