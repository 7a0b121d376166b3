"""Celery beat, workers and runners as processes, around one database and one broker."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import call_command
from django.utils import timezone

from scheduler import public
from scheduler.engine.broker import sender
from scheduler.models import Run, Runner, Task
from scheduler.registry import REGISTRY
from scheduler.rules.states import Outcome
from tests.scheduler.beat.brokers import connect, forget, require_broker
from tests.scheduler.engine.test_processes import ROOT, database_url, until
from tests.scheduler.make import make_kind, outcomes_of, reload

pytestmark = [pytest.mark.concurrency, pytest.mark.django_db(transaction=True)]


class Site:
    """Processes of one installation; all of them end with the test."""

    def __init__(self, folder: Path, broker: str) -> None:
        """Let the kind `note` write to `folder`."""
        self.folder = folder
        self.queue = f"kanade-test-{os.getpid()}-{folder.name}"
        self.broker = broker
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, *arguments: str, engine: str = "threads") -> subprocess.Popen[bytes]:
        """Start `python …`."""
        environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "tests.scheduler.beat.site_settings",
            "PROGRAM_DATABASE": database_url(),
            "PROGRAM_FOLDER": str(self.folder),
            "PROGRAM_BROKER": self.broker,
            "PROGRAM_QUEUE": self.queue,
            "KANADE_ENGINE": engine,
            "PYTHONPATH": str(ROOT),
        }
        with (self.folder / f"log-{len(self.started)}").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, *arguments], env=environment, cwd=ROOT, stdout=log, stderr=log
            )
        self.started.append(process)
        return process

    def start_worker(self) -> subprocess.Popen[bytes]:
        """Start a worker of Celery's."""
        celery = ("-m", "celery", "--quiet", "-A", "kanade", "worker", "--pool", "solo")
        alone = ("--without-gossip", "--without-mingle", "--without-heartbeat")
        return self.start(*celery, "--queues", self.queue, *alone)

    def start_beat(self) -> subprocess.Popen[bytes]:
        """Start celery beat."""
        pidfile = str(self.folder / "beat.pid")
        return self.start("-m", "celery", "-A", "kanade", "beat", "--pidfile", pidfile)

    def notes(self) -> list[int]:
        """The tasks whose body ran, once for each time."""
        path = self.folder / "notes"
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def end(self) -> None:
        """Kill what still runs, and delete the queue."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()
        with connect(self.broker) as connection:
            forget(connection, self.queue)


@pytest.fixture
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    for name in ("note", "hold"):
        REGISTRY.add(make_kind(name))
    found = Site(tmp_path, require_broker(getattr(request, "param", "redis")))
    yield found
    found.end()


def live() -> bool:
    return Task.objects.live().filter(kind="note").exists()


@pytest.mark.parametrize(
    "site", ["redis", pytest.param("rabbitmq", marks=pytest.mark.prove)], indirect=True
)
def test_workers_of_celery_run_what_a_runner_tells_them_of(site: Site) -> None:
    site.start_worker()
    site.start("manage.py", "runscheduler", "--name", "desk", engine="celery")
    # A message for nothing is harmless, and shows that the worker listens.
    sender(site.broker).send_task("kanade.run", args=[0], queue=site.queue)
    until(Runner.objects.filter(name="desk").exists, "the runner is there")
    until(Runner.objects.filter(name__startswith="celery@").exists, "the worker is there")

    tasks = [public.request("note") for _ in range(20)]
    until(lambda: not live(), "all of them are over")

    assert Counter(site.notes()) == dict.fromkeys(tasks, 1)
    names = set(Run.objects.filter(kind="note").values_list("runner_name", flat=True))
    assert len(names) == 1
    assert names.pop().startswith("celery@")


@pytest.mark.prove
def test_what_a_killed_worker_held_is_run_again(site: Site) -> None:
    worker = site.start_worker()
    site.start("manage.py", "runscheduler", "--name", "desk", engine="celery")
    task = public.request("hold")
    until(site.notes, "a body has begun")
    (holder,) = Task.objects.filter(pk=task).values_list("runner__name", flat=True)

    worker.kill()
    until(lambda: len(site.notes()) == 2, "it begins again")
    (site.folder / "release").touch()
    until(lambda: reload(task).state == "finished", "it ends")

    assert str(holder).startswith("celery@")
    assert outcomes_of(task) == [Outcome.CRASHED, Outcome.SUCCEEDED]
    assert Run.objects.filter(task_id=task).latest("pk").runner_name == "desk"


@pytest.mark.prove
def test_without_a_worker_the_runner_runs_what_is_overdue(site: Site) -> None:  # F-29
    site.start("manage.py", "runscheduler", "--name", "sweeper", engine="celery")

    task = public.request("note", at=timezone.now() - timedelta(seconds=30))
    until(lambda: not live(), "it is over")

    assert site.notes() == [task]
    assert Run.objects.get(kind="note").runner_name == "sweeper"


@pytest.mark.prove
def test_beat_is_a_clock_without_a_runner(site: Site, settings: object) -> None:
    settings.KANADE_CELERY_QUEUE = site.queue  # type: ignore[attr-defined]  # pytest-django's
    call_command("beattick", "--every", "1")
    tasks = [public.request("note", after=number % 2) for number in range(10)]

    site.start_worker()
    site.start_beat()
    until(lambda: not live(), "all of them are over")

    assert Counter(site.notes()) == dict.fromkeys(tasks, 1)
    runner = Runner.objects.get()
    assert (runner.name.startswith("beat@"), runner.stopped_at) == (True, None)


@pytest.mark.parametrize("site", ["redis", "rabbitmq"], indirect=True)
@pytest.mark.prove
def test_two_clocks_fire_once(site: Site, settings: object) -> None:
    settings.KANADE_CELERY_QUEUE = site.queue  # type: ignore[attr-defined]  # pytest-django's
    call_command("beattick", "--every", "1")
    for _ in range(2):
        site.start_worker()
    site.start_beat()
    site.start("manage.py", "runscheduler")
    until(lambda: Runner.objects.count() >= 2, "both clocks tick")

    tasks = [public.request("note", after=number / 50) for number in range(300)]
    until(lambda: not live(), "all of them are over")

    assert Counter(site.notes()) == dict.fromkeys(tasks, 1)
    assert Run.objects.filter(kind="note").count() == 300
