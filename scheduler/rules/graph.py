"""Dependencies between tasks: which are refused, which count as settled already."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from scheduler.rules.states import TERMINAL, TaskState

MOST_DEPENDENCIES = 10_000


class DependencyError(ValueError):
    """A task cannot wait for what was asked; the message says why."""


@dataclass(frozen=True, slots=True)
class Waits:
    """For which of the asked dependencies a task still waits.

    `failed` are those that ended without success although the request requires it.
    """

    open: tuple[int, ...]
    failed: tuple[int, ...]


def distinct(ids: Iterable[object]) -> tuple[int, ...]:
    """Return the ids once each, in order; raise DependencyError for what is no id."""
    found: dict[int, None] = {}
    for one in ids:
        if isinstance(one, bool) or not isinstance(one, int) or one < 1:
            raise DependencyError(f"a dependency is a task id, not {one!r:.40}")
        found[one] = None
    if len(found) > MOST_DEPENDENCIES:
        raise DependencyError(f"a task waits for at most {MOST_DEPENDENCIES} others")
    return tuple(found)


def still_open(
    wanted: Iterable[int],
    states: Mapping[int, TaskState],
    *,
    last_issued: int,
    require_success: bool,
) -> Waits:
    """Sort `wanted` by the states of the tasks that exist.

    An id that was never issued is refused; one that is gone since counts as settled.
    """
    opened, failed = [], []
    for one in wanted:
        state = states.get(one)
        if state is None and one > last_issued:
            raise DependencyError(f"there is no task {one} to wait for")
        if state is not None and state not in TERMINAL:
            opened.append(one)
        elif require_success and state not in {None, TaskState.FINISHED}:
            failed.append(one)
    return Waits(tuple(opened), tuple(failed))


def refuse_cycle(
    task_id: int,
    wanted: Iterable[int],
    dependencies_of: Callable[[frozenset[int]], Iterable[int]],
) -> None:
    """Raise DependencyError if `task_id` would wait for itself through `wanted`.

    `dependencies_of` answers for a set of tasks at once, so a chain costs one call a step.
    """
    level = frozenset(wanted)
    if task_id in level:
        raise DependencyError(f"task {task_id} cannot wait for itself")
    seen: set[int] = set()
    while level:
        seen |= level
        level = frozenset(dependencies_of(level)) - seen
        if task_id in level:
            raise DependencyError(f"task {task_id} would wait for itself through others")


def cycles(edges: Iterable[tuple[int, int]], *, most: int) -> list[tuple[int, ...]]:
    """Return at most `most` cycles that share no task, each in the order of its waiting.

    An edge is (task, the task it waits for).
    """
    waits: dict[int, set[int]] = {}
    for task_id, dependency_id in edges:
        waits.setdefault(task_id, set()).add(dependency_id)
    found: list[tuple[int, ...]] = []
    while len(found) < most:
        try:
            TopologicalSorter(waits).prepare()
        except CycleError as error:
            # Its second argument is the cycle, with the first task once more at the end.
            members = tuple(reversed(error.args[1]))[:-1]
            found.append(members)
            for one in members:
                del waits[one]
            continue
        break
    return found
