"""What an `apply` does, document by document, and in which words it is reported."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from fleet.rules.differences import Difference
from fleet.rules.documents import Document
from fleet.rules.manifest.kinds import Kind


class Action(StrEnum):
    """What happens to the row that a document describes."""

    CREATE = "create"
    UPDATE = "update"
    UNCHANGED = "unchanged"
    DELETE = "delete"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Given:
    """A document and the file it was read from."""

    source: str
    document: Document


@dataclass(frozen=True, slots=True)
class Located:
    """A problem or a warning, with the file and line where it is."""

    source: str
    line: int
    path: str
    message: str

    def __str__(self) -> str:
        place = f"{self.source}:{self.line}" if self.source else ""
        return ": ".join(filter(None, (place, self.path, self.message)))


@dataclass(frozen=True, slots=True)
class Step:
    """One document (or, to be pruned, one row) and what happens to it."""

    action: Action
    kind: Kind | None
    id: str
    source: str = ""
    line: int = 0
    changes: tuple[Difference, ...] = ()
    problems: tuple[Located, ...] = ()
    warnings: tuple[Located, ...] = ()

    @property
    def name(self) -> str:
        """What the step is about: `job inventory`; a bad document may have no name."""
        return " ".join(filter(None, (self.kind, self.id)))


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps in the order of their doing; `is_applied` = the database says so now."""

    steps: tuple[Step, ...]
    is_applied: bool
    # Why rows that the set made before were not deleted although that was asked for.
    not_pruned: str = ""

    @property
    def bad(self) -> Sequence[Step]:
        """The documents that could not be applied."""
        return [step for step in self.steps if step.action is Action.BAD]

    def count(self, action: Action) -> int:
        """How many steps do that."""
        return sum(step.action is action for step in self.steps)
