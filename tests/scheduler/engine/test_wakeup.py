"""Who is woken by a request, and when."""

import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import connection, connections, transaction

from scheduler import public
from scheduler.engine import wakeup
from scheduler.engine.wakeup import DUE, Listener
from scheduler.registry import REGISTRY
from tests.clock import ManualClock
from tests.scheduler.make import make_kind

pytestmark = [pytest.mark.concurrency, pytest.mark.django_db(transaction=True)]
# Only ever reached by a test that fails.
PATIENCE = 10


@pytest.fixture(autouse=True)
def quiet() -> None:
    """Nobody was woken yet."""
    REGISTRY.add(make_kind("demo"))
    DUE.clear()


@pytest.fixture
def listener() -> Iterator[Listener]:
    """A process that listens; on SQLite there is nothing to listen to."""
    if connection.vendor != "postgresql":
        pytest.skip("NOTIFY is PostgreSQL's")
    found = Listener()
    found.start()
    # It looks once for what was announced before it listened.
    assert DUE.wait(PATIENCE)
    DUE.clear()
    yield found
    found.stop()


def ask(clock: ManualClock, after: float = 0) -> None:
    public.request("demo", after=after, now=clock.now)


def test_a_request_wakes_the_runner_of_its_own_process_at_the_commit(clock: ManualClock) -> None:
    with transaction.atomic():
        ask(clock)
        assert not DUE.is_set()

    assert DUE.is_set()


def test_a_request_that_is_rolled_back_wakes_nobody(clock: ManualClock) -> None:
    with transaction.atomic():
        ask(clock)
        transaction.set_rollback(True)

    assert not DUE.is_set()


def test_what_is_due_later_than_the_longest_wait_wakes_nobody(clock: ManualClock) -> None:
    ask(clock, after=wakeup.LONGEST_WAIT.total_seconds() + 1)
    assert not DUE.is_set()

    ask(clock, after=wakeup.LONGEST_WAIT.total_seconds())
    assert DUE.is_set()


def test_a_hint_wakes_at_the_commit() -> None:
    public.wake()

    assert DUE.is_set()


def test_the_end_of_a_dependency_wakes(clock: ManualClock) -> None:
    first = public.request("demo", after=3600, now=clock.now)
    public.request("demo", depends_on=[first], now=clock.now)
    assert not DUE.is_set()

    public.cancel(first, now=clock.now)

    assert DUE.is_set()


def test_other_processes_are_woken_by_a_notification(
    clock: ManualClock, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As in a process that has no runner: only the database speaks.
    heard = threading.Event()
    monkeypatch.setattr(wakeup, "DUE", heard)

    with transaction.atomic():
        wakeup.announce(clock.now + timedelta(seconds=1), now=clock.now)
        transaction.get_connection().run_on_commit.clear()

    assert heard.wait(PATIENCE)


def test_a_listener_whose_connection_is_cut_listens_again(
    clock: ManualClock, listener: Listener
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE query = 'LISTEN kanade_due' AND datname = current_database()"
        )
        assert cursor.fetchall() == [(True,)]

    # The new connection looks for what it may have missed.
    assert DUE.wait(PATIENCE)
    connections.close_all()
