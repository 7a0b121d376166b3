"""What all tests share: hypothesis profiles, the order, and the rows that every database has."""

import importlib
import os
from collections.abc import Generator

import pytest
from django.apps import apps
from django.db import connection
from django.test import TestCase, TransactionTestCase
from hypothesis import HealthCheck, settings
from pytest_django.plugin import blocking_manager_key

# Shared, noisy machines: no deadline by the clock; `make prove` asks for the long profile.
settings.register_profile(
    "short", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "long", max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("long" if os.environ.get("KANADE_PROVE") == "1" else "short")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start the long journeys first, so that no worker ends with one while the other is idle."""
    items.sort(key=lambda item: not item.nodeid.startswith("tests/journey/"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, None, None]:
    """Put the migrations' rows back after a test that empties every table at its end."""
    yield
    # After the last test the database is gone as well.
    if nextitem is not None and _empties_tables(item):
        with item.config.stash[blocking_manager_key].unblock():
            for module, function in (
                ("0002_single_rows", "make_rows"),
                ("0004_roles", "make_roles"),
            ):
                getattr(importlib.import_module(f"fleet.migrations.{module}"), function)(
                    apps, connection.schema_editor()
                )


def _empties_tables(item: pytest.Item) -> bool:
    case = getattr(item, "cls", None)
    if case is not None and issubclass(case, TransactionTestCase):
        return not issubclass(case, TestCase)
    return "transactional_db" in getattr(item, "fixturenames", ()) or any(
        mark.kwargs.get("transaction") for mark in item.iter_markers("django_db")
    )
