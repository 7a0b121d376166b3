"""Who acts in these tests, and what they ask of the scheduler."""

from collections.abc import Iterator

import pytest

from scheduler.public import Actor
from tests.fleet.asked import requests_noted


@pytest.fixture
def alice() -> Actor:
    return Actor("user", "alice", user_id=None)


@pytest.fixture
def asked() -> Iterator[list[tuple[str, str | None]]]:
    """(kind, key) of what was asked of the scheduler."""
    with requests_noted() as found:
        yield found
