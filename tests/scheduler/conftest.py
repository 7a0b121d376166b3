"""A clock and a registry for each test of the engine."""

from collections.abc import Iterator

import pytest

from tests.clock import ManualClock
from tests.scheduler.make import only_kinds


@pytest.fixture
def clock() -> ManualClock:
    """Monday, 2 March 2026, 08:00 UTC."""
    return ManualClock()


@pytest.fixture(autouse=True)
def no_other_kinds() -> Iterator[None]:
    """What a test registers is gone after it, and no application's kind is there before."""
    with only_kinds():
        yield
