"""The harness itself: a point that is not reached, or a child that fails, fails the round."""

from collections.abc import Callable
from functools import partial

import pytest
from django.db import transaction

from scheduler.models import Queue
from tests.faults.forking import dying, empty, in_a_child, killed, killed_at
from tests.faults.places import Place, When

pytestmark = [pytest.mark.concurrency, pytest.mark.usefixtures("own")]
INSERT = "INSERT INTO scheduler_queue "


@pytest.fixture(autouse=True)
def no_rows(own: None) -> None:
    empty(Queue)


def write(name: str = "a") -> None:
    with transaction.atomic():
        Queue.objects.create(name=name)


@pytest.mark.parametrize(
    ("when", "stays"),
    [(When.BEFORE, 0), (When.AFTER, 0), (When.COMMIT, 0), (When.COMMITTED, 1)],
    ids=["before", "after", "before its commit", "after its commit"],
)
def test_a_child_dies_on_the_right_side_of_its_commit(when: When, stays: int) -> None:
    killed_at(Place(INSERT, when), write)

    assert Queue.objects.count() == stays


def test_a_statement_without_a_transaction_is_committed_when_it_returns() -> None:
    killed_at(Place(INSERT, When.COMMITTED), lambda: Queue.objects.bulk_create([Queue(name="a")]))

    assert Queue.objects.count() == 1


def test_the_nth_statement_is_counted() -> None:
    def three() -> None:
        for name in "abc":
            write(name)

    killed_at(Place(INSERT, When.BEFORE, 3), three)

    assert Queue.objects.count() == 2


@pytest.mark.parametrize(("after", "stays"), [(False, 0), (True, 1)], ids=["before", "after"])
def test_a_child_dies_beside_a_call(*, after: bool, stays: int) -> None:
    class Writer:
        def write(self) -> None:
            write()

    def act(point_of_death: Callable[[], None]) -> None:
        writer = Writer()
        with dying(writer, "write", point_of_death, after=after):
            writer.write()

    killed(act)

    assert Queue.objects.count() == stays


def test_a_point_that_is_never_reached_fails_the_round() -> None:
    with pytest.raises(AssertionError, match="ended so: 0"):
        killed_at(Place("no such statement", When.BEFORE), write)


def test_a_child_that_fails_fails_the_round(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AssertionError, match="ended so: 1"):
        in_a_child(partial(int, "x"))

    assert "invalid literal" in capfd.readouterr().err
