"""What publishing a manifest did."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

R = TypeVar("R")


class Change(StrEnum):
    """What publishing did."""

    CREATE = "create"
    UPDATE = "update"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class Published(Generic[R]):
    """The row, what happened to it, and its canonical document before and after."""

    row: R
    change: Change
    before: dict[str, object] | None
    after: dict[str, object]


def change_of(before: dict[str, object] | None, *, changed: bool) -> Change:
    """What happened to a row that stood as `before` says."""
    if before is None:
        return Change.CREATE
    return Change.UPDATE if changed else Change.UNCHANGED
