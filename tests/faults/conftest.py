"""A database of a module's own, in which killed children commit for real."""

import os
import zlib
from collections.abc import Iterator

import pytest
from pytest_django.plugin import DjangoDbBlocker

from tests.faults.own import own_database


@pytest.fixture(scope="module")
def own(
    request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[None]:
    """Let the whole module work on its copy of the test database."""
    name = request.module.__name__.rpartition(".")[2]
    with django_db_blocker.unblock(), own_database(name):
        yield


# One test a point, each a second or more: `make prove` runs them all, and many rounds of each;
# `make test` every third one, another third on the other database.
AT_EACH_POINT = {
    "test_a_kill_leaves_all_or_nothing_and_is_recovered_from",
    "test_f17_nothing_is_handed_out_after_the_freeze_was_answered",
    "test_a_runner_that_dies_loses_nothing_and_doubles_nothing",
}
THIRDS = 3


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out two thirds of the points, the same ones in every process."""
    if os.environ.get("KANADE_PROVE") == "1":
        return
    ours = int(os.environ.get("TEST_DATABASE") == "postgres")
    later = [
        item
        for item in items
        if item.name.partition("[")[0] in AT_EACH_POINT
        and zlib.crc32(item.nodeid.encode()) % THIRDS != ours
    ]
    config.hook.pytest_deselected(items=later)
    items[:] = [item for item in items if item not in later]
