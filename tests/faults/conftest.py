"""A database of a module's own, in which killed children commit for real."""

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
