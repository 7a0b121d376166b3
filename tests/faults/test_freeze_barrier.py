"""F-17: after a freeze was answered nothing is handed out, wherever everybody else stands then.

Something is stopped at each point, inside its transaction where there is one; the freeze is set by
its own operation; the rest goes on. Where the point holds the gate the freeze waits for it.
"""

import sqlite3
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from fleet.models import Command
from fleet.operations.freezing import clear_freeze, set_freeze
from fleet.operations.running import run_job
from fleet.operations.stopping import kill_execution
from tests.faults.acts import ACTS
from tests.faults.delivery_acts import Exchange, Fetch
from tests.faults.fleet_acts import remove
from tests.faults.fleet_points import POINTS, Point
from tests.faults.fleet_world import ALICE, Machine, World, ids_in, run_tasks
from tests.faults.halting import PATIENCE, Halt, in_a_thread
from tests.faults.places import Place, Trap, When
from tests.fleet.agent.until import until

pytestmark = [pytest.mark.concurrency, pytest.mark.usefixtures("own")]
# A transaction that is open there has read that the fleet is not frozen, and holds it to that.
GATED = {"run.create_in_txn", "wave.in_txn", "fetch.in_txn", "freeze.in_txn"}
FREEZE_COMMIT = Place("INSERT INTO fleet_freeze ", When.COMMIT)


@pytest.fixture(scope="module")
def world(own: None) -> World:
    return World.make()


@dataclass
class Freezer:
    """A person who freezes the fleet. `before` = what was handed out when that was committed."""

    reason: str
    before: set[Any] = field(default_factory=set)
    answered: threading.Event = field(default_factory=threading.Event)

    def __call__(self) -> None:
        with Trap(FREEZE_COMMIT, self._note).set():
            set_freeze({"reason": self.reason}, actor=ALICE, now=timezone.now())
        self.answered.set()

    def _note(self) -> None:
        self.before = handed_out()

    def begin(self) -> tuple[threading.Thread, bool]:
        """Freeze in a thread; return it, and whether it waits for somebody's transaction."""
        # Nobody else is about: whoever holds SQLite's one lock is the one that was stopped.
        locked = connection.vendor == "sqlite" and not _may_write()
        thread = in_a_thread(self)
        if not locked:
            until(
                lambda: self.answered.is_set() or _somebody_waits(),
                within_s=60.0,
                what="it is set or waits",
            )
        return thread, not self.answered.is_set()


def handed_out() -> set[Any]:
    """The commands that ever went out."""
    return set(Command.objects.exclude(handed_out_at=None).values_list("pk", flat=True))


def _may_write() -> bool:
    probe = sqlite3.connect(connection.settings_dict["NAME"], timeout=0, isolation_level=None)
    try:
        probe.execute("BEGIN IMMEDIATE")
        probe.execute("ROLLBACK")
    except sqlite3.OperationalError:
        return False
    finally:
        probe.close()
    return True


def _somebody_waits() -> bool:
    if connection.vendor == "sqlite":
        return False
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database ="
            " (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        return cursor.fetchone() is not None


@contextmanager
def thawed_afterwards() -> Iterator[None]:
    try:
        yield
    finally:
        clear_freeze(actor=ALICE, now=timezone.now())
        run_tasks()


@pytest.mark.parametrize("point", POINTS, ids=[point.name for point in POINTS])
def test_f17_nothing_is_handed_out_after_the_freeze_was_answered(
    world: World, point: Point
) -> None:
    act, halt, freezer = ACTS[point.act](world), Halt(), Freezer(world.name("halt"))
    act.prepare()

    def halted() -> None:
        with Trap(point.place, halt).set():
            act.do()

    with thawed_afterwards():
        actor = in_a_thread(halted)
        halt.wait()
        setter, waits = freezer.begin()
        halt.go.set()
        actor.join(PATIENCE)
        setter.join(PATIENCE)

        told = [pc.exchanges()["commands"] for pc in world.pcs[:8]]

        assert freezer.answered.is_set()
        assert told == [[]] * 8
        assert handed_out() == freezer.before
        if connection.vendor == "postgresql":
            assert waits is (point.name in GATED)
    act.clean()
    if isinstance(act, Exchange):
        act.end()


def test_f17_of_200_exchanges_on_their_way_none_is_answered_with_a_command_afterwards(
    world: World,
) -> None:
    act, freezer = Fetch(world), Freezer(world.name("storm"))
    asking, answered = deque(world.pcs), deque[str]()
    many = threading.Event()

    def ask() -> None:
        while asking:
            pc: Machine = asking.popleft()
            answered.extend(ids_in(pc.exchanges()))
            if len(answered) >= 40:
                many.set()

    with thawed_afterwards():
        threads = [in_a_thread(ask) for _ in range(16)]
        assert many.wait(PATIENCE)
        freezer()
        for thread in threads:
            thread.join(PATIENCE)

        again = [ids_in(pc.exchanges()) for pc in world.pcs]

        assert handed_out() == freezer.before
        mine = Command.objects.filter(execution=act.execution, pk__in=freezer.before)
        assert {str(pk) for pk in mine.values_list("pk", flat=True)} == set(answered)
        assert 40 <= len(answered) == len(set(answered)) < 200
        assert again == [[]] * 200
    kill_execution(act.execution, actor=ALICE, now=timezone.now())


def test_f17_an_override_with_a_reason_passes_and_nothing_else(world: World) -> None:
    act, pc = Fetch(world), world.pcs[0]
    with thawed_afterwards():
        set_freeze({"reason": "year end"}, actor=ALICE, now=timezone.now())
        execution = run_job(
            world.job,
            target={"pcs": [pc.agent.name]},
            actor=ALICE,
            now=timezone.now(),
            reason="the hole is open",
            override_freeze=True,
        )

        told = ids_in(pc.exchanges())

        assert told == [str(Command.objects.get(execution=execution).pk)]
        assert ids_in(world.pcs[1].exchanges()) == []
    remove(type(execution).objects.filter(pk__in=[execution.pk, act.execution.pk]))
