"""Reading the freeze row."""

import pytest
from django.db import connection, transaction
from pytest_django import DjangoAssertNumQueries

from fleet.flow.freeze import read_freeze
from fleet.models import Freeze
from tests.fleet.make import NOW

pytestmark = pytest.mark.django_db


def test_the_row_of_a_fresh_database_is_no_freeze() -> None:
    assert not read_freeze(NOW).frozen


def test_a_set_freeze_holds_and_says_why() -> None:
    Freeze.objects.update(is_set=True, reason="year end", ends="2027-01-05", tz="utc")
    state = read_freeze(NOW)
    assert (state.frozen, state.words) == (True, "frozen: year end")
    assert state.until is not None


def test_a_lost_row_is_frozen() -> None:
    Freeze.objects.all().delete()
    assert read_freeze(NOW).words == "frozen: unreadable (no freeze record)"


@pytest.mark.parametrize(
    "broken", [{"starts": "soon"}, {"ends": "2026-13-01"}, {"tz": "Mars/Olympus"}]
)
def test_a_row_that_cannot_be_read_is_frozen(broken: dict[str, str]) -> None:
    Freeze.objects.update(is_set=True, **broken)
    assert read_freeze(NOW).unreadable is not None


def test_reading_is_one_query_and_the_lock_another_where_there_is_one(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    with django_assert_num_queries(1):
        assert not read_freeze(NOW).frozen
    with (
        transaction.atomic(),
        django_assert_num_queries(2 if connection.vendor == "postgresql" else 1),
    ):
        assert not read_freeze(NOW, lock=True).frozen
