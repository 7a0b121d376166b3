"""Builds the value of one YAML document from the parser's events."""

from dataclasses import dataclass, field

import yaml

from fleet.rules.problems import Notes, Problem, dotted, shown
from fleet.rules.scalars import ScalarError, plain_value
from fleet.rules.shapes import scalar_problem


def line_of(event: yaml.Event) -> int:
    """The line an event begins in, counted from 1."""
    return int(event.start_mark.line) + 1 if event.start_mark else 1


@dataclass(slots=True)
class _Open:
    """A mapping or list that is being filled."""

    value: dict[str, object] | list[object]
    path: str
    key: str | None = None
    seen: set[str] = field(default_factory=set)


class Builder:
    """Builds the value of one document from its events and notes what is not allowed."""

    def __init__(self, line: int, start: yaml.DocumentStartEvent | None = None) -> None:
        self.line = line
        self._notes = Notes()
        self.lines: dict[str, int] = {}
        self._open: list[_Open] = []
        self.value: object = None
        # How deep inside a mapping or list that stands where a key should be.
        self._in_key = 0
        if start is not None and start.tags:
            self._notes.problem("", "tags are not read; remove the %TAG line")

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is not allowed in the document."""
        return tuple(self._notes.problems)

    def take(self, event: yaml.Event) -> None:
        """Go on with the next event."""
        if isinstance(event, yaml.CollectionEndEvent):
            if self._in_key:
                self._in_key -= 1
            else:
                self._open.pop()
        elif self._in_key:
            self._in_key += isinstance(event, yaml.CollectionStartEvent)
        elif isinstance(event, yaml.NodeEvent):
            self._take_node(event)

    def _take_node(self, event: yaml.NodeEvent) -> None:
        top = self._open[-1] if self._open else None
        if top is not None and isinstance(top.value, dict) and top.key is None:
            self._take_key(event, top)
            return
        path = self._place(top, line_of(event))
        self._check(event, path)
        value = self._value_of(event, path)
        if top is None:
            self.value, self.line = value, line_of(event)
        elif isinstance(top.value, list):
            top.value.append(value)
        else:
            top.value[top.key or ""] = value
            top.key = None
        if isinstance(value, dict | list):
            self._open.append(_Open(value, path))

    def _place(self, top: _Open | None, line: int) -> str:
        """The path of the next value, its line noted."""
        if top is None:
            return ""
        if isinstance(top.value, dict):
            return dotted(top.path, top.key or "")
        path = f"{top.path}[{len(top.value)}]"
        self.lines[path] = line
        return path

    def _check(self, event: yaml.NodeEvent, path: str) -> None:
        if isinstance(event, yaml.AliasEvent):
            self._notes.problem(path, f"aliases are not read; write the value of *{event.anchor}")
            return
        if event.anchor is not None:
            self._notes.problem(path, f"anchors are not read; remove &{event.anchor}")
        tag = getattr(event, "tag", None)
        if tag is not None:
            self._notes.problem(path, f"tags are not read; remove {shown(tag)}")

    def _value_of(self, event: yaml.NodeEvent, path: str) -> object:
        if isinstance(event, yaml.MappingStartEvent):
            return {}
        if isinstance(event, yaml.SequenceStartEvent):
            return []
        return self._scalar(event, path) if isinstance(event, yaml.ScalarEvent) else None

    def _scalar(self, event: yaml.ScalarEvent, path: str) -> object:
        try:
            value = plain_value(event.value) if event.implicit[0] else event.value
        except ScalarError as error:
            self._notes.problem(path, str(error))
            return None
        if message := scalar_problem(value):
            self._notes.problem(path, message)
        return value

    def _take_key(self, event: yaml.NodeEvent, top: _Open) -> None:
        if not isinstance(event, yaml.ScalarEvent):
            self._notes.problem(top.path, "has a key that is no text")
            self._in_key = int(isinstance(event, yaml.CollectionStartEvent))
            top.key = ""
            return
        key = event.value
        path = dotted(top.path, key)
        self._check(event, path)
        self._check_key(event, path, top)
        top.seen.add(key)
        top.key = key
        self.lines.setdefault(path, line_of(event))

    def _check_key(self, event: yaml.ScalarEvent, path: str, top: _Open) -> None:
        plain = bool(event.implicit[0])
        if plain and event.value == "<<":
            self._notes.problem(path, "merge keys are not read; write the keys out")
        elif message := scalar_problem(event.value):
            self._notes.problem(top.path, f"has a key that {message}")
        elif plain and not isinstance(self._scalar(event, path), str):
            self._notes.problem(path, "is no text; write the key in quotes")
        if event.value in top.seen:
            self._notes.problem(path, f"the key stands twice, first in line {self.lines[path]}")
