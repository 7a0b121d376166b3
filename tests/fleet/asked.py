"""What was asked of the scheduler, instead of asking it."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from fleet.flow import asking
from scheduler.public import request


@contextmanager
def requests_noted() -> Iterator[list[tuple[str, str | None]]]:
    """Note (kind, key) of every request of `fleet.flow.asking`."""
    found: list[tuple[str, str | None]] = []
    with patch.object(asking, "request", autospec=request) as fake:
        fake.side_effect = lambda kind, *, key=None, **_: found.append((kind, key))
        yield found
