"""What an agent says in one exchange, read item by item.

The frame is strict: a mistake in it is told to the sender. The items are not: a result waits in an
agent's outbox until it is answered for, so a spoilt one is repaired and stored as well as it can
be, and never stops those behind it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from fleet.rules.protocols import problem_of_protocol
from fleet.rules.report_fields import moment, parsed_id, read_whole
from fleet.rules.report_items import Chunk, Result, Start, read_chunk, read_result, read_start
from fleet.rules.sessions import Greeting
from scheduler.rules.strict_json import SAFE_INTEGER

MAX_HOLDING = 5_000
# The rest is answered for the next time.
MAX_ITEMS = 1_000
MAX_BOOT_ID = 100
_FINGERPRINT = 64
_REQUIRED = frozenset({"protocol", "epoch", "seq", "boot_id", "fingerprint"})
_OPTIONAL = frozenset({"facts", "sent_at", "mono", "holding", "started", "results", "output"})

T = TypeVar("T")


class ReportError(ValueError):
    """The frame of an exchange is wrong; `field` says where."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class Report:
    """One exchange. `strange` are names of commands that cannot be any."""

    greeting: Greeting
    facts: object = None
    sent_at: datetime | None = None
    holding: frozenset[UUID] = frozenset()
    started: tuple[Start, ...] = ()
    results: tuple[Result, ...] = ()
    output: tuple[Chunk, ...] = ()
    strange: tuple[str, ...] = ()

    @property
    def has_news(self) -> bool:
        """Whether anything happened at the PC since it was last heard."""
        return bool(self.started or self.results or self.output)

    @property
    def in_hand(self) -> frozenset[UUID]:
        """The commands that the agent has, in whatever state."""
        started = (start.command for start in self.started)
        return self.holding.union(started, (result.command for result in self.results))


def read_report(value: object) -> Report:
    """Return the exchange that a JSON value describes; ReportError when its frame is wrong."""
    if not isinstance(value, Mapping):
        raise ReportError("", "an exchange is a JSON object")
    _require_keys(value)
    if problem := problem_of_protocol(value["protocol"]):
        raise ReportError("protocol", problem)
    strange: list[str] = []
    return Report(
        greeting=_greeting(value),
        facts=value.get("facts"),
        sent_at=moment(value.get("sent_at")),
        holding=frozenset(_ids(_items(value, "holding", MAX_HOLDING), strange)),
        started=_each(_items(value, "started", MAX_ITEMS), read_start, strange),
        results=_each(_items(value, "results", MAX_ITEMS), read_result, strange),
        output=_each(_items(value, "output", MAX_ITEMS), read_chunk, strange),
        strange=tuple(strange),
    )


def _require_keys(value: Mapping[str, object]) -> None:
    missing = sorted(_REQUIRED - value.keys())
    if missing:
        raise ReportError(missing[0], "is missing")
    unknown = sorted(value.keys() - _REQUIRED - _OPTIONAL)
    if unknown:
        allowed = ", ".join(sorted(_REQUIRED | _OPTIONAL))
        raise ReportError(unknown[0][:100], f"unknown key; allowed here: {allowed}")


def _greeting(value: Mapping[str, object]) -> Greeting:
    epoch = None if value["epoch"] is None else _number(value, "epoch")
    fingerprint = _text(value, "fingerprint", _FINGERPRINT)
    return Greeting(fingerprint, epoch, _text(value, "boot_id", MAX_BOOT_ID), _number(value, "seq"))


def _number(value: Mapping[str, object], key: str) -> int:
    number = read_whole(value[key], least=0, most=SAFE_INTEGER)
    if number is None:
        raise ReportError(key, "must be a whole number, not negative")
    return number


def _text(value: Mapping[str, object], key: str, most: int) -> str:
    text = value[key]
    if not isinstance(text, str) or len(text) > most or not (text.isascii() and text.isprintable()):
        raise ReportError(key, f"must be a text of at most {most} printable ASCII characters")
    return text


def _items(value: Mapping[str, object], key: str, most: int) -> list[object]:
    items = value.get(key, [])
    if not isinstance(items, list):
        raise ReportError(key, "must be a list")
    return items[:most]


def _ids(items: Iterable[object], strange: list[str]) -> Iterable[UUID]:
    for item in items:
        found = parsed_id(item)
        if found is not None:
            yield found
        elif isinstance(item, str):
            strange.append(item)


def _each(
    items: Iterable[object], read: Callable[[UUID, Mapping[str, object]], T], strange: list[str]
) -> tuple[T, ...]:
    """Read those items that name a command; what names none has nobody to answer to."""
    found = []
    for item in items:
        if not isinstance(item, Mapping):
            continue
        command = parsed_id(item.get("command"))
        if command is not None:
            found.append(read(command, item))
        elif isinstance(item.get("command"), str):
            strange.append(str(item["command"]))
    return tuple(found)
