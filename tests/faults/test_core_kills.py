"""A runner dies at each of the core's points; another one does the rest, and nobody repairs.

Once at each point here, fifty times in `make prove`.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from scheduler.models import Run, Runner, Task
from tests.faults.core_invariants import held, overlaps, unfinished, violations
from tests.faults.core_points import POINTS, PROBES, SEAMS, Point
from tests.faults.core_world import GROUPS, USUAL, Fate, World
from tests.faults.forking import Notes, dying, in_a_child, killed
from tests.faults.places import Trap
from tests.scheduler.make import only_kinds

pytestmark = [pytest.mark.concurrency, pytest.mark.usefixtures("own")]
ROUNDS = 50 if os.environ.get("KANADE_PROVE") == "1" else 1
# Most rounds have the point's own tasks alone, which is much cheaper.
ALL_TASKS_EVERY = 5


@pytest.fixture
def world(own: None, tmp_path: Path) -> Iterator[World]:
    found = World(Notes(tmp_path / "notes"))
    with only_kinds(*found.kinds()):
        yield found


def die_at(world: World, point: Point) -> None:
    """Let a child be the runner, until its point."""

    def act(point_of_death: Callable[[], None]) -> None:
        fate = Fate(
            point_of_death,
            in_body=point.seam,
            holding=point.about == "hold",
            stopping=point.name == "shutdown.drain",
            beating=point.name.startswith("beat"),
        )
        with ExitStack() as stack:
            if point.place is not None:
                stack.enter_context(Trap(point.place, point_of_death).set())
            elif point.seam in SEAMS:
                owner, name, after = SEAMS[point.seam]
                stack.enter_context(dying(owner, name, point_of_death, after=after))
            world.work(fate)

    killed(act)


def groups_of(point: Point, number: int) -> list[str]:
    """What there is to do in a round."""
    is_whole = (POINTS.index(point) + number) % ALL_TASKS_EVERY == 0
    wanted = USUAL if is_whole else ("chain",)
    return list(dict.fromkeys([*wanted, *([point.about] if point.about else [])]))


def one_round(world: World, point: Point, number: int) -> None:
    groups = groups_of(point, number)
    world.prepare(*groups)

    die_at(world, point)
    assert PROBES[point.probe]() is point.keeps
    assert violations() == {}
    dead = Runner.objects.exclude(name="dead").values_list("pid", flat=True).first()
    in_a_child(world.work)

    lines = world.notes.lines()
    assert violations() == {}
    assert unfinished({k: v for name in groups for k, v in GROUPS[name].items()}) == {}
    assert held() == []
    assert overlaps(lines, dead) == []
    assert_the_bodies_say_the_same(lines)


def assert_the_bodies_say_the_same(lines: list[str]) -> None:
    """Whoever was entered has a run for it; who waits came after; hooks were called."""
    order = [" ".join(line.split()[:2]) for line in lines]
    tasks = {str(task.key): task for task in Task.objects.all()}
    for key, task in tasks.items():
        assert order.count(f"begin {key}") <= task.runs, key
        if task.state == "finished":
            assert f"end {key}" in order
    assert order.index("end first") < order.index("begin after")
    if "bad" in tasks:
        assert order.index("end bad") < order.index("begin anyway")
        assert "begin needs" not in order
    hooked = {line.split()[1] for line in order if line.startswith("hook")}
    told = Run.objects.filter(hook_count__isnull=False).values_list("key", flat=True)
    assert hooked == set(told)


@pytest.mark.parametrize("point", POINTS, ids=[point.name for point in POINTS])
def test_a_runner_that_dies_loses_nothing_and_doubles_nothing(world: World, point: Point) -> None:
    for number in range(ROUNDS):
        one_round(world, point, number)
