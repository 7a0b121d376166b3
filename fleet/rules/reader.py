"""Reads one mapping of a manifest: typed values out, every problem noted, nothing lost.

While it reads it writes `document`, the canonical form: keys in the order of reading, defaults
left out, texts as typed. So there is one description of each key instead of a parser and a
printer that must agree.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import TypeVar

from fleet.rules.problems import Notes, dotted, shown
from fleet.rules.wording import closest, kind_of
from scheduler.rules.durations import parse_duration

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

MAX_LINE = 200
_SUGGESTED_KEYS = 20


class Reader:
    """Gives typed values of one mapping; a wrong value is noted and its default returned."""

    def __init__(self, value: Mapping[str, object], path: str, notes: Notes) -> None:
        self.path = path
        self.notes = notes
        self.document: dict[str, object] = {}
        self._value = value
        self._known: list[str] = []

    @classmethod
    def of(cls, value: object, path: str, notes: Notes, what: str) -> "Reader":
        """A reader of `value`; where it is no mapping that is noted and the reader is empty."""
        if isinstance(value, dict):
            return cls(value, path, notes)
        notes.problem(path, f"must be a mapping ({what}), not {kind_of(value)}")
        return _Absent({}, path, notes)

    def path_of(self, key: str) -> str:
        """The dotted path of `key`."""
        return dotted(self.path, key)

    def problem(self, key: str, message: str) -> None:
        """Note what is wrong with the value of `key`."""
        self.notes.problem(self.path_of(key), message)

    def problem_here(self, message: str) -> None:
        """Note what is wrong with the mapping as a whole."""
        self.notes.problem(self.path, message)

    def warn(self, key: str, message: str) -> None:
        """Note what is accepted at `key` and should be known."""
        self.notes.warning(self.path_of(key), message)

    def has(self, key: str) -> bool:
        """Whether the key is there at all."""
        return key in self._value

    def missing(self, key: str, example: str) -> None:
        """Note that a required key is not there."""
        self.problem(key, f"is required, for example {example}")

    def raw(self, key: str) -> object:
        """The value as it stands (None when absent); marks the key as known."""
        self._known.append(key)
        return self._value.get(key)

    def _typed(self, key: str, kind: type[T], wanted: str) -> T | None:
        value = self.raw(key)
        # bool is a number to Python and no number to an operator.
        if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
            return value
        if self.has(key):
            hint = "remove the key or write " if value is None else "must be "
            self.problem(key, f"{hint}{wanted}, not {kind_of(value)}")
        return None

    def text(self, key: str, *, most: int = MAX_LINE, lines: bool = False) -> str | None:
        """A text that is not blank, of at most `most` characters, on one line unless `lines`."""
        text = self._typed(key, str, "text (a number or yes/no needs quotes)")
        if text is None:
            return None
        text = text.replace("\r\n", "\n")
        if not text.strip():
            self.problem(key, "must not be blank; remove the key instead")
        elif len(text) > most:
            self.problem(key, f"has {len(text)} characters; at most {most} are allowed")
        elif "\n" in text and not lines:
            self.problem(key, "must be one line")
        else:
            self.document[key] = text
            return text
        return None

    def required(self, key: str, example: str, *, most: int = MAX_LINE) -> str:
        """A text that must be there; empty text where it is not (which is noted)."""
        if not self.has(key):
            self._known.append(key)
            self.missing(key, example)
        return self.text(key, most=most) or ""

    def parsed(self, key: str, parse: Callable[[str], T], *, most: int = MAX_LINE) -> T | None:
        """A text as `parse` understands it; its ValueError is the problem's message."""
        text = self.text(key, most=most)
        if text is None:
            return None
        try:
            return parse(text)
        except ValueError as error:
            self.problem(key, str(error))
            return None

    def duration(self, key: str, *, least: timedelta, most: timedelta) -> timedelta | None:
        """A duration such as `1h 30m` within the bounds, both included."""

        return self.parsed(key, lambda text: parse_duration(text, least=least, most=most))

    def choice(self, key: str, options: type[E], default: E) -> E:
        """One of the words of `options`."""
        found = self._option(key, options)
        if found == default:
            del self.document[key]
        return found or default

    def required_choice(self, key: str, options: type[E]) -> E:
        """One of the words of `options`, which must be there; the first where it is not."""
        first = next(iter(options))
        if not self.has(key):
            self.missing(key, f"{key}: {first}")
        return self._option(key, options) or first

    def _option(self, key: str, options: type[E]) -> E | None:
        text = self.text(key)
        known = [option.value for option in options]
        if text is None or text in known:
            return None if text is None else options(text)
        self.problem(
            key,
            f"{shown(text)} is unknown; write one of {', '.join(known)}{closest(text, known)}",
        )
        return None

    def flag(self, key: str, *, default: bool) -> bool:
        """`true` or `false`."""
        value = self._typed(key, bool, "true or false")
        if value is None or value is default:
            return default
        self.document[key] = value
        return value

    def integer(self, key: str, *, least: int, most: int) -> int | None:
        """A whole number within the bounds, both included."""
        value = self._typed(key, int, f"a whole number from {least} to {most}")
        if value is None:
            return None
        if not least <= value <= most:
            self.problem(key, f"{value} is out of bounds: write {least} to {most}")
            return None
        self.document[key] = value
        return value

    def texts(
        self, key: str, parse: Callable[[str], T], *, most: int, numbers: bool = False
    ) -> tuple[T, ...]:
        """A list of at most `most` texts (whole numbers count as text where `numbers`)."""
        items = self.items(key, most=most)
        parsed: list[T] = []
        kept: list[str] = []
        for path, item in items:
            if numbers and isinstance(item, int) and not isinstance(item, bool):
                item = str(item)  # noqa: PLW2901  # `days: [1, 3]` means the tokens 1 and 3
            if not isinstance(item, str):
                self.notes.problem(path, f"must be text, not {kind_of(item)}")
                continue
            try:
                parsed.append(parse(item))
                kept.append(item)
            except ValueError as error:
                self.notes.problem(path, str(error))
        if kept:
            self.document[key] = kept
        return tuple(parsed)

    def items(self, key: str, *, most: int) -> Sequence[tuple[str, object]]:
        """The entries of a list with their paths; nothing where the key is absent or wrong."""
        values = self._typed(key, list, "a list")
        if values is None:
            return ()
        if len(values) > most:
            self.problem(key, f"has {len(values)} entries; at most {most} are allowed")
            return ()
        return [(f"{self.path_of(key)}[{index}]", item) for index, item in enumerate(values)]

    def child(self, key: str, what: str) -> "Reader":
        """A reader of the mapping at `key`, empty where there is none."""
        self._known.append(key)
        if not self.has(key):
            return _Absent({}, self.path_of(key), self.notes)
        child = Reader.of(self._value[key], self.path_of(key), self.notes, what)
        self.document[key] = child.document
        return child

    def free(self, key: str) -> None:
        """Keep the value of `key` as it stands, whatever it is."""
        value = self.raw(key)
        if self.has(key):
            self.document[key] = value

    def refuse(self, reasons: Mapping[str, str]) -> None:
        """Note each key of `reasons` that is there: known, and refused for that reason."""
        for key, reason in reasons.items():
            self._known.append(key)
            if self.has(key):
                self.problem(key, reason)

    def finish(self) -> dict[str, object]:
        """Note every key that nobody asked for; the canonical document, empty parts left out."""
        known = sorted(set(self._known))
        for count, key in enumerate(key for key in self._value if key not in known):
            hint = closest(str(key), known) if count < _SUGGESTED_KEYS else ""
            self.problem(str(key), f"unknown key{hint}")
        empty = [key for key, value in self.document.items() if value == {}]
        for key in empty:
            del self.document[key]
        return self.document

    def names(self) -> Iterator[str]:
        """The keys that are there."""
        return (str(key) for key in self._value)


class _Absent(Reader):
    """Stands where a mapping is missing or wrong, which was noted once."""

    def problem_here(self, message: str) -> None:
        """Say nothing: the whole mapping is what is missing."""

    def missing(self, key: str, example: str) -> None:
        """Say nothing: the whole mapping is what is missing."""
