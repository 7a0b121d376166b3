"""Which texts are stored as they come, and how texts of PCs are made harmless.

People and programs are told to correct a bad text; a PC's text is cleaned item by item, so that
one poisoned result never blocks those behind it.
"""

import re
import unicodedata

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# Printable only by moving other characters about: shown as escapes.
BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
# NUL, controls (category Cc) but for tab and line ends, halves of surrogate pairs.
_BAD = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


class TextError(ValueError):
    """A text holds a character that cannot be stored or shown; the message names it."""


def problem_of(text: str) -> str | None:
    """Return what is wrong with a text from a person, or None."""
    found = _BAD.search(text)
    if found is None:
        return None
    char, position = found[0], found.start()
    if char == "\0":
        return f"has a NUL character at position {position}; remove it"
    if "\ud800" <= char <= "\udfff":
        return f"has half a surrogate pair at position {position}; send valid Unicode"
    return f"has the control character U+{ord(char):04X} at position {position}; remove it"


def require_clean(text: str) -> str:
    """Return the text; raise TextError when it holds NUL, a surrogate or a control character."""
    problem = problem_of(text)
    if problem:
        raise TextError(problem)
    return text


def clean_text(text: str, *, most: int = 4000) -> str:
    """Return a PC's text with NUL and surrogates replaced, controls escaped, cut at `most`."""
    cleaned = "".join(_harmless(char) for char in text[:most])
    return cleaned[:most]


def _harmless(char: str) -> str:
    if char == "\0" or "\ud800" <= char <= "\udfff":
        return REPLACEMENT
    if char in "\n\t":
        return char
    if unicodedata.category(char) == "Cc" or char in BIDI:
        return f"\\x{ord(char):02x}" if ord(char) < 256 else f"\\u{ord(char):04x}"  # noqa: PLR2004
    return char


def clean_json(value: object, *, most: int = 4000) -> object:
    """Return a JSON value with every text in it cleaned, keys included."""
    if isinstance(value, str):
        return clean_text(value, most=most)
    if isinstance(value, list):
        return [clean_json(item, most=most) for item in value]
    if isinstance(value, dict):
        return {
            clean_text(str(key), most=most): clean_json(item, most=most)
            for key, item in value.items()
        }
    return value
