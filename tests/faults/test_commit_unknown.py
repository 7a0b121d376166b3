"""The connection breaks at a COMMIT: before the server got it, or after it did it. F-02.

The runner cannot know which. It reads again, guesses nothing, and all is done once.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import OperationalError, connection, transaction

from scheduler.models import Queue
from tests.faults.commit_proxy import CommitProxy
from tests.faults.core_invariants import held, overlaps, unfinished, violations
from tests.faults.core_world import GROUPS, World
from tests.faults.forking import Notes
from tests.scheduler.make import only_kinds

pytestmark = [
    pytest.mark.concurrency,
    pytest.mark.usefixtures("own"),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no connection"),
]
TASKS = ("chain", "failure", "retry", "limit", "cron")
MOST_COMMITS = 60


@pytest.fixture
def proxy(own: None) -> Iterator[CommitProxy]:
    settings = connection.settings_dict
    address = (settings["HOST"] or "127.0.0.1", int(settings["PORT"] or 5432))
    with CommitProxy(address).between() as found:
        yield found


@pytest.fixture
def world(proxy: CommitProxy, tmp_path: Path) -> Iterator[World]:
    found = World(Notes(tmp_path / "notes"))
    with only_kinds(*found.kinds()):
        yield found


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_the_client_sees_the_same_error_whether_it_was_done_or_not(
    world: World, proxy: CommitProxy, *, after: bool
) -> None:
    world.prepare()
    proxy.arm(1, after=after)

    with pytest.raises(OperationalError), transaction.atomic():
        Queue.objects.create(name="q")
    connection.close()

    assert proxy.hits == 1
    assert Queue.objects.count() == (1 if after else 0)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_runner_finds_out_what_became_of_each_commit(
    world: World, proxy: CommitProxy, *, after: bool
) -> None:
    for number in range(1, MOST_COMMITS):
        world.prepare(*TASKS)
        loop = world.begin()
        proxy.arm(number, after=after)
        loop.run(until_idle=True)
        assert unfinished({k: v for name in TASKS for k, v in GROUPS[name].items()}) == {}
        assert (violations(), held()) == ({}, [])
        assert overlaps(world.notes.lines(), dead=None) == []
        assert once_each(world.notes.lines()), f"commit {number}"
        if not proxy.hits:
            break
    assert number > len(TASKS)


def once_each(lines: list[str]) -> bool:
    """No body ran again because of it: only the one that failed did."""
    began = [line.split()[1] for line in lines if line.startswith("begin")]
    return sorted(began) == sorted(
        ["first", "after", "bad", "anyway", "flaky", "flaky", "narrow-1", "narrow-2", "hourly"]
    )
