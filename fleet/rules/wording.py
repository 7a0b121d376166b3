"""Words for error texts: what a value is, and which known word was probably meant."""

import difflib
from collections.abc import Iterable

_KINDS = {
    dict: "a mapping",
    list: "a list",
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "nothing",
}


def kind_of(value: object) -> str:
    """The value's type in the words of an operator."""
    return _KINDS.get(type(value), type(value).__name__)


def closest(word: str, known: Iterable[str]) -> str:
    """`; did you mean "…"?` where one of `known` is close to `word`, else nothing."""
    found = difflib.get_close_matches(word[:64], list(known), n=1, cutoff=0.6)
    return f'; did you mean "{found[0]}"?' if found else ""
