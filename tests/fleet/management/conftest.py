"""Commands ask the scheduler; these tests note it instead."""

from collections.abc import Iterator

import pytest

from tests.fleet.asked import requests_noted


@pytest.fixture(autouse=True)
def asked() -> Iterator[list[tuple[str, str | None]]]:
    """(kind, key) of what was asked of the scheduler."""
    with requests_noted() as found:
        yield found
