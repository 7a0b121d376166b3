"""A process dies at each point of fan-out, delivery and control; another one goes on.

200 PCs. After the kill an act is there as a whole or not at all; after the recovery everything is
as if nothing had happened. Once at each point here, fifty times in `make prove`.
"""

import os

import pytest

from tests.faults.acts import ACTS
from tests.faults.delivery_acts import Exchange
from tests.faults.fleet_acts import Act, Run
from tests.faults.fleet_invariants import violations
from tests.faults.fleet_points import POINTS, Point
from tests.faults.fleet_world import World
from tests.faults.forking import in_a_child, killed_at

pytestmark = [pytest.mark.concurrency, pytest.mark.usefixtures("own")]
ROUNDS = 50 if os.environ.get("KANADE_PROVE") == "1" else 1


@pytest.fixture(scope="module")
def world(own: None) -> World:
    return World.make()


def one_round(act: Act, point: Point, turn: int) -> None:
    act.world.hear()
    act.prepare()
    killed_at(point.place.at(point.place.nth + turn - 1), act.do)
    assert act.left() == act.expected(point, turn)
    if isinstance(act, Run):
        assert act.stored() == point.stored
    in_a_child(act.recover)
    act.check(point)
    assert violations() == {}
    act.clean()


@pytest.mark.parametrize("point", POINTS, ids=[point.name for point in POINTS])
def test_a_kill_leaves_all_or_nothing_and_is_recovered_from(world: World, point: Point) -> None:
    act = ACTS[point.act](world)
    for number in range(ROUNDS):
        one_round(act, point, 1 + number % act.turns)
    if isinstance(act, Exchange):
        act.end()
    assert violations() == {}
