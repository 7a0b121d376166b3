"""Fork, kill, recover: rounds in which a process dies at a named point, by SIGKILL.

A *point* is a `Place` (places.py): the n-th statement that contains some SQL, and on which side of
it, or of the commit of its transaction, the process dies. A point that is no statement (in a body,
between two operations) is a call of the test's own: wrap the function with `dying`, or let the body
call `point_of_death`.

A *round*, in a module whose tests ask for the fixture `own`:

    empty(Task, Run, …)                     the rows of the last round
    prepare()                               real code, in this process
    killed_at(place, act)                   a child does `act` and has to die at that place, else
                                            the round fails: the signal and a byte are the witness
    in_a_child(recover)                     a clean process, as after a restart
    assert …                                by SQL, and by the `Notes` that bodies wrote

Connections never cross a fork: each process opens its own, and `forked` closes ours.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from django.db import connection, models, transaction

from tests.faults.own import die, forked
from tests.faults.places import Place, Trap

KILLED = -int(signal.SIGKILL)


class Witness:
    """A pipe through which a child says that it came to its point."""

    def __init__(self) -> None:
        """Open it; both processes have it."""
        self._out, self._in = os.pipe()

    def point_of_death(self) -> None:
        """Say so, and end this process as a power cut does."""
        os.write(self._in, b"!")
        die()

    def close(self) -> bytes:
        """Return what was said."""
        os.close(self._in)
        said = os.read(self._out, 16)
        os.close(self._out)
        return said


def killed(act: Callable[[Callable[[], None]], object]) -> None:
    """Let a child do `act(point_of_death)`; it has to call that and die of it."""
    witness = Witness()
    ended = forked(lambda: act(witness.point_of_death))
    said = witness.close()
    assert (ended, said) == (KILLED, b"!"), f"the child was to be killed once, it ended so: {ended}"


def killed_at(place: Place, act: Callable[[], object]) -> None:
    """Let a child do `act`; it has to come to the place, and dies there."""

    def trapped(point_of_death: Callable[[], None]) -> None:
        with Trap(place, point_of_death).set():
            act()

    killed(trapped)


def in_a_child(act: Callable[[], object]) -> None:
    """Let a clean child do `act`, to its end."""
    ended = forked(act)
    assert ended == 0, f"the child ended so: {ended}"


@contextmanager
def dying(
    owner: Any, name: str, point_of_death: Callable[[], None], *, after: bool
) -> Iterator[None]:
    """Die before or after the next call of a function, a seam between two operations."""
    original = getattr(owner, name)

    def last_call(*arguments: Any, **options: Any) -> Any:
        if after:
            original(*arguments, **options)
        point_of_death()

    with patch.object(owner, name, last_call):
        yield


def empty(*tables: type[models.Model]) -> None:
    """Delete all rows, in the order given; constraints hold at the end of each statement."""
    with transaction.atomic(), connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"DELETE FROM {table._meta.db_table}")


class Notes:
    """A file to which processes append a line at a time."""

    def __init__(self, path: Path) -> None:
        """Name it; it need not be there."""
        self.path = path

    def write(self, line: str) -> None:
        """Append a line in one write, so that processes do not mix theirs."""
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(handle, f"{line}\n".encode())
        os.close(handle)

    def lines(self) -> list[str]:
        """What was written so far."""
        return self.path.read_text().splitlines() if self.path.exists() else []

    def clear(self) -> None:
        """Begin a new round."""
        self.path.unlink(missing_ok=True)
