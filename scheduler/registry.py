"""Which handler runs a kind of task, and the recurring tasks that code declares."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Final

from scheduler.rules.fire import Fire

Handler = Callable[[Fire], object]
# Called with the fire, the number of retries made before, and the error.
Hook = Callable[[Fire, int, str], object]
# Given the time, it deletes what is old enough and says how many rows that was.
Pruner = Callable[[datetime], int]


class UnknownKindError(ValueError):
    """No handler is registered under this name."""


class DuplicateKindError(ValueError):
    """Two handlers want the same name."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of task. `limit` bounds its bodies in one runner, `queue` is where requests go."""

    name: str
    handler: Handler
    queue: str | None = None
    limit: int | None = None
    on_attempt_failed: Hook | None = None
    on_failed: Hook | None = None


@dataclass(frozen=True, slots=True)
class Declared:
    """A recurring task that every start of a runner registers."""

    kind: str
    key: str
    options: MappingProxyType[str, object]


@dataclass(slots=True)
class Registry:
    """Kinds by name and declared tasks by (kind, key)."""

    kinds: dict[str, Kind] = field(default_factory=dict)
    declared: dict[tuple[str, str], Declared] = field(default_factory=dict)
    pruners: dict[str, Pruner] = field(default_factory=dict)

    def add(self, kind: Kind) -> None:
        """Register a kind; raise DuplicateKindError when another handler has its name."""
        known = self.kinds.get(kind.name)
        if known is not None and _place(known.handler) != _place(kind.handler):
            raise DuplicateKindError(
                f"kind {kind.name!r} is {_place(known.handler)} already, "
                f"it cannot be {_place(kind.handler)} too"
            )
        self.kinds[kind.name] = kind

    def get(self, name: str) -> Kind:
        """Return the kind; raise UnknownKindError."""
        try:
            return self.kinds[name]
        except KeyError:
            known = ", ".join(sorted(self.kinds)) or "none"
            raise UnknownKindError(f"no kind {name!r} is registered; known: {known}") from None

    def declare(self, task: Declared) -> None:
        """Note a recurring task for the next start; the last declaration of a key counts."""
        self.declared[task.kind, task.key] = task


def _place(handler: Handler) -> str:
    name = getattr(handler, "__qualname__", repr(handler))
    return f"{getattr(handler, '__module__', '?')}.{name}"


REGISTRY: Final = Registry()
