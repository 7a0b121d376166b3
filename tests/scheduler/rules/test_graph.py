"""Which dependencies are refused, which count as settled: X59 to X62."""

from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.rules.graph import DependencyError, Waits, distinct, refuse_cycle, still_open
from scheduler.rules.states import TaskState

STATES = dict(enumerate(TaskState, start=1))
PENDING, RUNNING, FINISHED, FAILED, CANCELLED, QUARANTINED = range(1, 7)


def test_an_id_counts_once_and_keeps_its_place() -> None:  # X62
    assert distinct([3, 1, 3, 2, 1]) == (3, 1, 2)


@pytest.mark.parametrize("bad", ["1", 0, -1, True, None, 1.0])
def test_only_ids_are_dependencies(bad: object) -> None:
    with pytest.raises(DependencyError, match="a task id"):
        distinct([bad])


def test_only_live_dependencies_are_open() -> None:
    waits = still_open(STATES, STATES, last_issued=6, require_success=False)

    assert waits == Waits(open=(PENDING, RUNNING, QUARANTINED), failed=())


def test_what_ended_without_success_is_told_to_those_who_require_it() -> None:
    waits = still_open(STATES, STATES, last_issued=6, require_success=True)

    assert waits == Waits(open=(PENDING, RUNNING, QUARANTINED), failed=(FAILED, CANCELLED))


def test_an_id_that_is_gone_is_settled_and_one_to_come_is_refused() -> None:  # X59, D13
    assert still_open([7], {}, last_issued=7, require_success=True) == Waits((), ())
    with pytest.raises(DependencyError, match="no task 8"):
        still_open([8], {}, last_issued=7, require_success=False)


def edges_of(edges: dict[int, set[int]]) -> Callable[[frozenset[int]], Iterable[int]]:
    return lambda level: {other for one in level for other in edges.get(one, set())}


def test_a_chain_is_walked_in_one_call_a_step() -> None:
    chain = {number: {number + 1} for number in range(1, 100)}
    calls = []

    def ask(level: frozenset[int]) -> Iterable[int]:
        calls.append(level)
        return edges_of(chain)(level)

    refuse_cycle(0, [1], ask)

    assert len(calls) == 100


def test_a_circle_that_is_there_already_ends_the_walk() -> None:
    refuse_cycle(0, [1], edges_of({1: {2}, 2: {1}}))


@given(st.dictionaries(st.integers(0, 8), st.sets(st.integers(0, 8), max_size=3), max_size=9))
def test_exactly_the_paths_back_are_refused(edges: dict[int, set[int]]) -> None:
    wanted = edges.pop(0, set())
    reached, todo = set(wanted), list(wanted)
    while todo:
        for other in edges.get(todo.pop(), set()) - reached:
            reached.add(other)
            todo.append(other)

    if 0 in reached:
        with pytest.raises(DependencyError):
            refuse_cycle(0, wanted, edges_of(edges))
    else:
        refuse_cycle(0, wanted, edges_of(edges))
