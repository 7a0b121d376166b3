"""Between a manifest's document and the fields of a form: nothing is lost either way.

Every key that has a field is one entry of a table; what has none stands as YAML in one last
field. Plain Python, and it judges nothing: the manifest's own parser does.
"""

import copy
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from fleet.rules.document_writer import dump_yaml

OTHER = "other"
NUMBER = re.compile(r"[0-9]{1,15}")
Document = dict[str, object]


class Kind(Enum):
    """How a value is written in a field."""

    TEXT = "text"
    # Whole numbers in digits; anything else stays text, so that the parser says what is wrong.
    NUMBER = "number"
    WORDS = "words"  # a list of short texts, separated by commas or lines
    FLAG = "flag"
    ON_FLAG = "on flag"  # a flag that is on by default
    YAML = "yaml"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a form and the dotted path of its key."""

    name: str
    path: str
    kind: Kind = Kind.TEXT


def take(document: Document, path: str) -> object:
    """Remove and return the value at a path; None where there is none. Empty parts go too."""
    head, _, rest = path.partition(".")
    if not rest:
        return document.pop(head, None)
    inner = document.get(head)
    if not isinstance(inner, dict):
        return None
    value = take(inner, rest)
    if not inner:
        del document[head]
    return value


def put(document: Document, path: str, value: object) -> None:
    """Set the value at a path, making the mappings on the way."""
    head, _, rest = path.partition(".")
    if not rest:
        document[head] = value
        return
    inner = document.setdefault(head, {})
    if isinstance(inner, dict):
        put(inner, rest, value)


def to_fields(document: Mapping[str, object], table: Iterable[Field]) -> dict[str, object]:
    """What the fields show for a document, OTHER with the keys that have no field."""
    rest = copy.deepcopy(dict(document))
    shown = {field.name: _shown(take(rest, field.path), field.kind) for field in table}
    shown[OTHER] = dump_yaml([rest]) if rest else ""
    return shown


def _shown(value: object, kind: Kind) -> object:
    match kind:
        case Kind.FLAG | Kind.ON_FLAG:
            return value is True or (value is None and kind is Kind.ON_FLAG)
        case Kind.WORDS:
            return ", ".join(map(str, value)) if isinstance(value, list) else value or ""
        case Kind.YAML:
            return dump_yaml([value]) if value not in (None, {}, []) else ""
        case Kind.TEXT | Kind.NUMBER:
            return "" if value is None else str(value)


def to_document(
    values: Mapping[str, object], table: Iterable[Field], other: Mapping[str, object]
) -> Document:
    """The document that the fields say; blank fields leave their keys out.

    `values` holds texts, flags, and for YAML fields the values they mean.
    """
    document: Document = copy.deepcopy(dict(other))
    for field in table:
        value = _meant(values.get(field.name), field.kind)
        if value is not None:
            put(document, field.path, value)
    return document


def _meant(value: object, kind: Kind) -> object:
    match kind:
        case Kind.FLAG:
            return True if value else None
        case Kind.ON_FLAG:
            return None if value else False
        case Kind.YAML:
            return value
        case Kind.WORDS:
            return words(str(value or "")) or None
        case Kind.NUMBER:
            text = str(value or "").strip()
            return int(text) if NUMBER.fullmatch(text) else text or None
        case Kind.TEXT:
            return value or None


def words(text: str) -> list[str]:
    """The entries of a list that is written with commas or on lines of its own."""
    parts = text.replace("\n", ",").split(",")
    return [part.strip() for part in parts if part.strip()]
