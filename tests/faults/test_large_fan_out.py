"""F-19: a crash in the middle of a very large execution; in `make prove` it has 100,000 commands.

Nothing of it is to be seen until all is written; it goes on where it was; nobody waits for it.
"""

import os
from collections.abc import Iterator

import pytest
from django.db import connection
from django.utils import timezone

from fleet.flow.dispatch import dispatch
from fleet.flow.filling import CHUNK
from fleet.flow.plans import DispatchPlan
from fleet.flow.tick import tick
from fleet.models import Agent, AgentPresence, Command, Execution, Origin
from fleet.rules.targets import Target
from tests.faults.fleet_acts import remove
from tests.faults.fleet_invariants import violations
from tests.faults.fleet_points import GO_LIVE, INSERT_COMMANDS
from tests.faults.fleet_world import World, finish, ids_in, recover, run_tasks
from tests.faults.forking import in_a_child, killed_at
from tests.faults.halting import Halt, in_a_thread
from tests.faults.places import Place, Trap, When
from tests.fleet.make import make_job, make_schedule, make_schedule_agent

pytestmark = [pytest.mark.concurrency, pytest.mark.usefixtures("own")]
SIZE = 100_000 if os.environ.get("KANADE_PROVE") == "1" else 5_000
CHUNKS = SIZE // CHUNK
MIDDLE = CHUNKS // 2
BEFORE, AFTER, COMMITTED = When.BEFORE, When.AFTER, When.COMMITTED


@pytest.fixture(scope="module")
def world(own: None) -> World:
    """Two PCs that speak, and so many others that the whole fleet has the size."""
    found, now = World.make(2), timezone.now()
    with connection.cursor() as cursor:
        # As many copies of the first one; through the ORM they would take half a minute.
        fields = Agent._meta.concrete_fields
        columns = [str(field.column) for field in fields if not field.primary_key]
        own_words = {"uuid", "uuid_text", "name", "name_fold"}
        copied = [_numbered(one) if one in own_words else f"a.{one}" for one in columns]
        cursor.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %s)"
            f" INSERT INTO fleet_agent ({', '.join(columns)}) SELECT {', '.join(copied)}"
            " FROM n, fleet_agent a WHERE a.id = %s",
            [SIZE - 2, found.pcs[0].agent.pk],
        )
    silent = Agent.objects.filter(presence=None).values_list("pk", flat=True)
    AgentPresence.objects.bulk_create(
        [AgentPresence(agent_id=pk, last_seen_at=now) for pk in silent], batch_size=10_000
    )
    return found


def _numbered(column: str) -> str:
    """A value of the n-th copy's own, in SQL: of both databases where it is a number or a text."""
    if column == "uuid":
        hexes = "'01a2000000007000a000' || substr('000000000000' || n.i, -12)"
        if connection.vendor == "sqlite":
            return hexes
        return "('01a2000000007000a000' || lpad(n.i::text, 12, '0'))::uuid"
    return "CAST(n.i AS text)"


@pytest.fixture
def large(world: World) -> Iterator[Execution]:
    """An execution of everybody that is still to be filled."""
    job = world.job
    assert job.current is not None
    world.hear()
    plan = DispatchPlan(job.current, Origin.MANUAL, "alice", Target(all=True))
    execution = dispatch(plan, now=timezone.now())
    yield execution
    remove(Execution.objects.filter(pk=execution.pk))


def written(execution: Execution) -> int:
    return Command.objects.filter(execution=execution).count()


@pytest.mark.parametrize(
    ("place", "left"),
    [
        pytest.param(Place(INSERT_COMMANDS, BEFORE, 1), 0, id="chunk 0"),
        pytest.param(Place(INSERT_COMMANDS, COMMITTED, 1), 1, id="chunk 1"),
        pytest.param(Place(INSERT_COMMANDS, COMMITTED, MIDDLE), MIDDLE, id="the middle one"),
        pytest.param(Place(INSERT_COMMANDS, AFTER, MIDDLE), MIDDLE - 1, id="inside of one"),
        pytest.param(
            Place(INSERT_COMMANDS, COMMITTED, CHUNKS - 1), CHUNKS - 1, id="the last but 1"
        ),
        pytest.param(Place(INSERT_COMMANDS, COMMITTED, CHUNKS), CHUNKS, id="the last one"),
        pytest.param(Place(GO_LIVE, AFTER), CHUNKS, id="its publication"),
    ],
)
def test_f19_a_killed_fan_out_goes_on_where_it_was(
    world: World, large: Execution, place: Place, left: int
) -> None:
    killed_at(place, run_tasks)

    assert written(large) == left * CHUNK
    assert [ids_in(pc.exchanges()) for pc in world.pcs] == [[], []]

    in_a_child(recover)

    large.refresh_from_db()
    commands = Command.objects.filter(execution=large)
    assert (large.state, large.planned, written(large)) == ("live", SIZE, SIZE)
    assert commands.values("agent").distinct().count() == SIZE
    assert [len(finish(pc)) for pc in world.pcs] == [1, 1]
    assert violations() == {}


# On SQLite a transaction that writes has the database to itself; a chunk's is a short one.
@pytest.mark.parametrize(
    "when",
    [COMMITTED] if connection.vendor == "sqlite" else [COMMITTED, AFTER],
)
def test_f19_other_schedules_fire_and_are_fetched_meanwhile(
    world: World, large: Execution, when: When
) -> None:
    halt, pc, now = Halt(), world.pcs[0], timezone.now()
    schedule = make_schedule(job=make_job())
    make_schedule_agent(schedule, pc.agent, due_at=now)

    def halted() -> None:
        with Trap(Place(INSERT_COMMANDS, when, MIDDLE), halt).set():
            run_tasks()

    thread = in_a_thread(halted)
    halt.wait()
    try:
        report = tick(now=timezone.now())
        fetched = ids_in(pc.exchanges())

        assert report.fired == 1
        assert fetched == [str(Command.objects.get(schedule_id=schedule.pk).pk)]
        assert Execution.objects.get(pk=large.pk).state == "planning"
    finally:
        halt.go.set()
        thread.join()
        remove(Execution.objects.filter(schedule=schedule))
        schedule.delete()
    assert written(large) == SIZE
