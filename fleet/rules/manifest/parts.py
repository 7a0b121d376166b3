"""What several kinds of manifest have in common: id, description, tags, origin, parameters."""

from collections.abc import Callable
from typing import TypeVar

from fleet.rules.names import parse_param, parse_slug, parse_tag
from fleet.rules.problems import Notes
from fleet.rules.reader import Reader
from fleet.rules.shapes import shape_problems
from fleet.rules.wording import kind_of

T = TypeVar("T")

MAX_DESCRIPTION = 4_000
MAX_TAGS = 50
MAX_PARAM = 4_096


def opened(document: object, what: str, path: str = "") -> Reader:
    """A reader of a whole document, its unstorable values noted first."""
    notes = Notes()
    for problem in shape_problems(document, path):
        notes.problem(problem.path, problem.message)
    return Reader.of(document, path, notes, what)


def read_id(reader: Reader, key: str, example: str) -> str:
    """A required id."""
    if not reader.has(key):
        reader.missing(key, example)
    return reader.parsed(key, parse_slug) or ""


def read_description(reader: Reader) -> str:
    """The description; empty where there is none."""
    return reader.text("description", most=MAX_DESCRIPTION, lines=True) or ""


def read_tags(reader: Reader) -> tuple[str, ...]:
    """The tags, in the order written."""
    return reader.texts("tags", parse_tag, most=MAX_TAGS)


def read_origin(reader: Reader) -> tuple[tuple[str, str], ...]:
    """Where the file lives in Git, as (key, text) pairs."""
    origin = reader.child("origin", "path, repo, script_file")
    found = [(key, origin.text(key)) for key in ("repo", "path", "script_file", "commit")]
    origin.finish()
    return tuple((key, text) for key, text in found if text is not None)


def read_params(reader: Reader, read_value: Callable[[Reader, str], T]) -> tuple[T, ...]:
    """The entries of the mapping `params`, by name."""
    params = reader.child("params", "NAME: value")
    values: list[T] = []
    for name in params.names():
        try:
            parse_param(name)
        except ValueError as error:
            params.raw(name)
            params.problem(name, str(error))
        else:
            values.append(read_value(params, name))
    params.finish()
    return tuple(values)


def param_text(reader: Reader, key: str) -> str | None:
    """A parameter's value: text of any content, also empty; None where the key is absent."""
    value = reader.raw(key)
    if not reader.has(key):
        return None
    if not isinstance(value, str):
        reader.problem(key, f"must be text (a number needs quotes), not {kind_of(value)}")
        return None
    if len(value) > MAX_PARAM:
        reader.problem(key, f"has {len(value)} characters; at most {MAX_PARAM} are allowed")
        return None
    reader.document[key] = value
    return value
