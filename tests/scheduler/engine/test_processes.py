"""Real runners as processes of their own: killed, stopped, told to stop, several at once."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from scheduler import public
from scheduler.engine import claim, reap
from scheduler.engine.finish import finish
from scheduler.models import Run, Runner, Task
from scheduler.registry import REGISTRY
from scheduler.rules.claims import Ending
from scheduler.rules.leases import LEASE
from scheduler.rules.outcomes import Succeeded
from scheduler.rules.states import Outcome, TaskState
from tests.clock import ManualClock
from tests.scheduler.make import make_kind, make_runner, outcomes_of, reload

pytestmark = [pytest.mark.concurrency, pytest.mark.django_db(transaction=True)]
PROGRAM = Path(__file__).with_name("program.py")
ROOT = PROGRAM.parents[3]
# Only ever reached by a test that fails.
PATIENCE = 60.0


class Processes:
    """Programs on the test's database, all of them ended with the test."""

    def __init__(self, folder: Path) -> None:
        """Let them write to `folder`."""
        self.folder = folder
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start the program."""
        environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "tests.scheduler.engine.program_settings",
            "PROGRAM_DATABASE": database_url(),
            "PROGRAM_FOLDER": str(self.folder),
            "PYTHONPATH": str(ROOT),
        }
        process = subprocess.Popen(
            [sys.executable, str(PROGRAM), *arguments], env=environment, cwd=ROOT
        )
        self.started.append(process)
        return process

    def lines(self, name: str) -> list[str]:
        """What they wrote to one file."""
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def release(self) -> None:
        """Let the bodies of `hold` end."""
        (self.folder / "release").touch()

    def end(self) -> None:
        """Kill what still runs."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    found = Processes(tmp_path)
    for name in ("note", "hold", "die"):
        REGISTRY.add(make_kind(name))
    yield found
    found.end()


def database_url() -> str:
    settings = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{settings['NAME']}"
    who = settings["USER"] + (f":{settings['PASSWORD']}" if settings["PASSWORD"] else "")
    return f"postgres://{who}@{settings['HOST']}:{settings['PORT'] or 5432}/{settings['NAME']}"


def until(found: Callable[[], object], what: str) -> None:
    """Return as soon as `found` says so."""
    pause = threading.Event()
    deadline = time.monotonic() + PATIENCE
    while not found():
        assert time.monotonic() < deadline, what
        pause.wait(0.05)


def ask(kind: str, **options: Any) -> int:
    return public.request(kind, **options)


def test_a_run_is_taken_over_within_seconds_when_its_process_is_killed(
    processes: Processes,
) -> None:
    task = ask("hold")
    first = processes.start("run", "--name", "first")
    until(lambda: processes.lines("started"), "the body begins")
    processes.start("run", "--name", "second")
    until(lambda: Runner.objects.filter(name="second").exists(), "the second runner is there")

    first.send_signal(signal.SIGKILL)
    killed = time.monotonic()
    until(lambda: len(processes.lines("started")) == 2, "the body begins again")
    took = time.monotonic() - killed
    processes.release()
    until(lambda: reload(task).state == TaskState.FINISHED.value, "the second run ends")

    assert took < 35
    assert outcomes_of(task) == [Outcome.CRASHED, Outcome.SUCCEEDED]
    assert len(processes.lines("ended")) == 1


def test_two_runners_run_each_task_once(processes: Processes) -> None:  # X10
    tasks = [ask("note") for _ in range(200)]

    runners = [processes.start("run", "--until-idle") for _ in range(2)]
    assert [process.wait(PATIENCE) for process in runners] == [0, 0]

    assert Counter(processes.lines("notes")) == Counter(map(str, tasks))
    assert Run.objects.count() == 200


def test_sigterm_lets_bodies_end_and_takes_nothing_more(processes: Processes) -> None:  # X73
    task = ask("hold")
    process = processes.start("run")
    until(lambda: processes.lines("started"), "the body begins")

    process.send_signal(signal.SIGTERM)
    # Its threads are free, and still it takes nothing.
    pause = threading.Event()
    pause.wait(0.5)
    late = ask("note")
    processes.release()

    assert process.wait(PATIENCE) == 0
    assert reload(task).state == TaskState.FINISHED.value
    assert reload(late).state == TaskState.PENDING.value
    assert processes.lines("notes") == []


def test_a_second_sigterm_gives_back_and_leaves_at_once(processes: Processes) -> None:  # F-24
    task = ask("hold")
    process = processes.start("run")
    until(lambda: processes.lines("started"), "the body begins")

    process.send_signal(signal.SIGTERM)
    threading.Event().wait(0.5)
    process.send_signal(signal.SIGTERM)

    assert process.wait(10) == 0
    row = reload(task)
    assert (row.state, row.attempt, row.suspect) == (TaskState.PENDING.value, 0, False)


def test_a_body_that_kills_its_process_is_quarantined_and_the_others_run(  # X07, F-22
    processes: Processes,
) -> None:
    good = [ask("note") for _ in range(3)]
    bad = ask("die", priority=100)
    for _ in range(10):
        if processes.start("run", "--until-idle", "--workers", "1").wait(PATIENCE) == 0:
            # The pause after the second crash is not waited for.
            pausing = Task.objects.filter(pk=bad, due_at__gt=timezone.now())
            if not pausing.update(due_at=timezone.now(), ready=True):
                break

    assert len(processes.lines("died")) == 3
    assert reload(bad).state == TaskState.QUARANTINED.value
    assert sorted(processes.lines("notes")) == sorted(map(str, good))


@pytest.mark.parametrize("fenced", [True, False], ids=["fenced", "without the fence it fails"])
def test_a_zombie_is_refused_because_of_its_token(  # F-10
    processes: Processes, *, fenced: bool
) -> None:
    task = ask("note")
    zombie = processes.start("zombie", *([] if fenced else ["unfenced"]))
    until(lambda: _is_stopped(zombie.pid), "it stops itself")
    clock = ManualClock(timezone.now())
    successor = make_runner("successor")
    reaper = reap.Reaper(successor.pk)
    reaper.scan(at=0.0, now=clock.now)
    assert reaper.scan(at=LEASE, now=clock.now) == [task]
    wish = claim.Wish(runner_id=successor.pk, limit=1, kinds=["note"])
    (held,) = claim.claim_suspect(wish, now=clock.now)

    zombie.send_signal(signal.SIGCONT)
    assert zombie.wait(PATIENCE) == 0
    finish([Ending(held, Succeeded("fresh"), clock.now)], runner_name="s", now=clock.now)

    assert processes.lines("zombie") == ["refused" if fenced else "accepted"]
    assert reload(task).result == ("fresh" if fenced else "stale")


def _is_stopped(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[0] == "T"
