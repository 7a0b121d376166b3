"""YAML (and JSON, which is YAML) from a file to plain values, with limits and line numbers.

The parser's events are read one by one, so that a hostile file costs no more than its limits:
no aliases, anchors, tags or merge keys, no key twice, and bounded size, depth and node count.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from fleet.rules.document_builder import Builder, line_of
from fleet.rules.problems import Problem
from fleet.rules.shapes import MAX_DEPTH

MAX_BYTES = 1024 * 1024
MAX_NODES = 50_000
_LAST_SEGMENT = re.compile(r"(?:\.[^.\[\]]*|\[[0-9]+\])\Z")
# JSON writes characters beyond the first 65,536 as two escapes, which YAML does not know.
_JSON_PAIR = re.compile(
    r"(?<!\\)((?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
)


class DocumentError(ValueError):
    """The text cannot be read as documents; `line` counts from 1."""

    def __init__(self, line: int, problems: tuple[Problem, ...]) -> None:
        self.line = line
        self.problems = problems
        super().__init__(f"line {line}: " + "; ".join(str(problem) for problem in problems))


@dataclass(frozen=True, slots=True)
class Document:
    """One document: its value, and the line of each dotted path. With problems: not to be used."""

    line: int
    value: object
    lines: dict[str, int]
    problems: tuple[Problem, ...] = ()

    def line_of(self, path: str) -> int:
        """The line of a path, or of the nearest mapping or list around it."""
        while path:
            if path in self.lines:
                return self.lines[path]
            path = _LAST_SEGMENT.sub("", path) if _LAST_SEGMENT.search(path) else ""
        return self.line


def load_yaml(data: str | bytes) -> list[Document]:
    """All documents of a file; DocumentError for the first that cannot be used."""
    documents = read_yaml(data)
    for document in documents:
        if document.problems:
            line = document.line_of(document.problems[0].path)
            raise DocumentError(line, document.problems)
    return documents


def read_yaml(data: str | bytes, *, json: bool = False) -> list[Document]:
    """All documents of a file, the bad ones with their problems; empty ones are left out.

    A document that is no YAML ends the list, for nobody knows where the next one begins.
    `json` reads JSON's way of escaping characters beyond U+FFFF as well.
    """
    text = _decoded(data)
    if json:
        text = _JSON_PAIR.sub(_joined_pair, text)
    documents: list[Document] = []
    builder = Builder(1)
    try:
        for event in _events(text):
            if isinstance(event, yaml.DocumentStartEvent):
                builder = Builder(line_of(event), event)
            elif isinstance(event, yaml.DocumentEndEvent):
                documents.append(
                    Document(builder.line, builder.value, builder.lines, builder.problems)
                )
            else:
                builder.take(event)
    except yaml.YAMLError as error:
        line, message = _syntax_problem(error, text)
        documents.append(Document(line, None, {}, (Problem("", message),)))
    except _TooMuchError as error:
        documents.append(Document(error.line, None, {}, (Problem("", str(error)),)))
    return [document for document in documents if document.value is not None or document.problems]


def _decoded(data: str | bytes) -> str:
    raw = data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")
    if len(raw) > MAX_BYTES:
        message = f"has {len(raw)} bytes; at most {MAX_BYTES} are read"
        raise DocumentError(1, (Problem("", message),))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"is not UTF-8 at byte {error.start}; save the file as UTF-8"
        line = raw.count(b"\n", 0, error.start) + 1
        raise DocumentError(line, (Problem("", message),)) from None


def _joined_pair(found: re.Match[str]) -> str:
    high, low = int(found[2], 16) - 0xD800, int(found[3], 16) - 0xDC00
    return f"{found[1]}\\U{0x10000 + (high << 10) + low:08x}"


class _TooMuchError(Exception):
    """A limit that ends the reading of the whole file."""

    def __init__(self, line: int, message: str) -> None:
        self.line = line
        super().__init__(message)


def _events(text: str) -> Iterator[yaml.Event]:
    """The events between the start and the end of the stream, as far as the limits allow."""
    depth = nodes = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.NodeEvent):
            nodes += 1
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise _TooMuchError(line_of(event), f"is nested deeper than {MAX_DEPTH} levels")
        if nodes > MAX_NODES:
            raise _TooMuchError(line_of(event), f"has more than {MAX_NODES} values")
        if not isinstance(event, yaml.StreamStartEvent | yaml.StreamEndEvent):
            yield event


def _syntax_problem(error: yaml.YAMLError, text: str) -> tuple[int, str]:
    if isinstance(error, yaml.reader.ReaderError):
        code, place = int(error.character), int(error.position)
        line = text.count("\n", 0, place) + 1
        return line, f"has the character U+{code:04X}, which is not allowed; remove it"
    mark = getattr(error, "problem_mark", None)
    line = int(mark.line) + 1 if mark else 1
    column = f" in column {int(mark.column) + 1}" if mark else ""
    what = getattr(error, "problem", None) or str(error)
    context = getattr(error, "context", None)
    return line, f"is no YAML{column}: {f'{context}: ' if context else ''}{what}"
