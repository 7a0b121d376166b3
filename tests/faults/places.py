"""A place inside an operation, named by what it says to the database there."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Self
from unittest.mock import patch

from django.db import connections


class When(StrEnum):
    """On which side of a statement, or of the commit of its transaction."""

    BEFORE = "before it"
    AFTER = "after it"
    COMMIT = "before its commit"
    COMMITTED = "after its commit"


@dataclass(frozen=True, slots=True)
class Place:
    """The `nth` statement that contains `sql` (as the ORM writes it, quotes left out)."""

    sql: str
    when: When
    nth: int = 1

    @property
    def is_open(self) -> bool:
        """Whether the transaction of the statement is open there."""
        return self.when in {When.AFTER, When.COMMIT}

    def at(self, nth: int) -> Self:
        """The same place at another turn."""
        return replace(self, nth=nth)


@dataclass(slots=True)
class Trap:
    """Calls `spring` once, in the thread that comes to the place while the trap is set."""

    place: Place
    spring: Callable[[], object]
    has_sprung: bool = False
    _count: int = field(default=0, init=False)
    _is_marked: bool = field(default=False, init=False)

    @contextmanager
    def set(self) -> Iterator[Self]:
        """Set it on this thread's connection."""
        connection = connections["default"]
        commit = connection.commit

        def trapped_commit() -> None:
            self._spring_if(self._is_marked and self.place.when is When.COMMIT)
            commit()
            self._spring_if(self._is_marked and self.place.when is When.COMMITTED)

        with (
            connection.execute_wrapper(self._statement),
            patch.object(connection, "commit", trapped_commit),
        ):
            yield self

    def _statement(
        self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        if self.place.sql not in sql.replace('"', ""):
            return execute(sql, params, many, context)
        self._count += 1
        is_it = self._count == self.place.nth
        self._spring_if(is_it and self.place.when is When.BEFORE)
        answer = execute(sql, params, many, context)
        self._spring_if(is_it and self.place.when is When.AFTER)
        self._is_marked = self._is_marked or is_it
        # A statement outside of transactions is committed when it returns.
        alone = not context["connection"].in_atomic_block
        self._spring_if(is_it and alone and self.place.when is When.COMMITTED)
        return answer

    def _spring_if(self, there: bool) -> None:
        if there and not self.has_sprung:
            self.has_sprung = True
            self.spring()
