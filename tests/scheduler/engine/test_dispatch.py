"""`KANADE_ENGINE=celery`: workers are told what is due; what nobody took is run all the same."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from scheduler import public
from scheduler.conf import Broker
from scheduler.engine import claim, dispatch
from scheduler.engine.claim import Wish
from scheduler.engine.dispatch import Dispatching, Outbox
from scheduler.engine.executors import celery
from scheduler.engine.hand import Hand
from scheduler.models import Runner, Task
from scheduler.registry import REGISTRY
from tests.clock import ManualClock
from tests.scheduler.engine.conftest import Ask
from tests.scheduler.make import Recorder, Worker, make_kind, make_runner, reload

pytestmark = pytest.mark.django_db


class Told:
    """Stands for the outbox: notes which tasks workers are told of, pass by pass."""

    def __init__(self) -> None:
        self.ids: list[list[int]] = []

    def put(self, task_ids: list[int]) -> None:
        self.ids.append(task_ids)


class NoThreads:
    """Stands for the executor of a hand that never gets anything."""

    workers = 4
    pace = type("Pace", (), {"ahead": 0})

    def __init__(self) -> None:
        self.given: list[int] = []

    def submit(self, jobs: Any) -> None:
        self.given += [job.task_id for job in jobs]


class Desk:
    """A dispatching runner without threads."""

    def __init__(self, clock: ManualClock, queues: tuple[str, ...] | None = None) -> None:
        self.clock = clock
        self.told, self.threads = Told(), NoThreads()
        hand = Hand(make_runner("desk"), self.threads)  # type: ignore[arg-type]  # stands for it
        self.intake = Dispatching(hand, queues, outbox=self.told)  # type: ignore[arg-type]

    def look(self) -> list[int]:
        """Make a pass; return the tasks that workers were told of."""
        self.intake.fill(at=self.clock.ticks, now=self.clock.now)
        return self.told.ids[-1]


@pytest.fixture
def desk(clock: ManualClock) -> Desk:
    return Desk(clock)


def test_workers_are_told_of_what_is_due_once(desk: Desk, ask: Ask, clock: ManualClock) -> None:
    now, later = ask(1), ask(2, at=clock.now + timedelta(seconds=5))

    assert desk.look() == [now]
    assert desk.look() == []
    clock.advance(5)
    assert desk.look() == [later]
    assert desk.threads.given == []


def test_they_are_told_once_more_of_what_nobody_took(
    desk: Desk, ask: Ask, clock: ManualClock
) -> None:
    task = ask(1)
    desk.look()

    clock.advance(9)
    assert desk.look() == []
    clock.advance(1)
    assert desk.look() == [task]


def test_a_task_that_comes_again_is_told_again(
    desk: Desk, ask: Ask, clock: ManualClock, worker: Worker
) -> None:
    task = ask(1, key="k", cron="* * * * *")
    clock.advance(60)
    assert desk.look() == [task]
    worker.run_due()
    desk.look()

    clock.advance(60)
    assert desk.look() == [task]


def test_a_lost_message_is_made_good_within_a_minute(  # F-29
    desk: Desk, ask: Ask, clock: ManualClock
) -> None:
    task = ask(1)
    desk.look()
    waited = 0
    while not desk.threads.given and waited < 60:
        waited += 5
        clock.advance(5)
        desk.look()

    assert desk.threads.given == [task]
    assert 20 <= waited <= 30


@pytest.mark.parametrize("case", ["paused", "other queue", "unknown kind"])
def test_what_no_worker_may_take_is_not_told(ask: Ask, clock: ManualClock, case: str) -> None:
    task = ask(1, queue="mail")
    queues = None
    if case == "paused":
        public.pause_queue("mail", now=clock.now)
    elif case == "other queue":
        queues = ("default",)
    else:
        Task.objects.filter(pk=task).update(kind="nobody")

    assert Desk(clock, queues).look() == []


def test_looking_costs_the_same_for_any_number(desk: Desk, ask: Ask) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as found:
            desk.look()
        return len(found)

    ask(0)
    first = queries()
    for number in range(20):
        ask(number)

    assert (first, queries()) == (5, 5)


class Sender:
    """Stands for Celery's application: fails as long as it is told to."""

    def __init__(self) -> None:
        self.sent: list[int] = []
        self.is_away = False
        self.asked = threading.Semaphore(0)

    def send_task(self, name: str, *, args: list[int], queue: str, **options: Any) -> None:
        try:
            if self.is_away:
                raise ConnectionError("away")
            assert (name, queue) == ("kanade.run", "q")
            self.sent += args
        finally:
            self.asked.release()


def test_a_broker_that_is_away_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    sender = Sender()
    monkeypatch.setattr(dispatch, "sender", lambda url: sender)
    monkeypatch.setattr(dispatch, "PAUSE", 0.0)
    sender.is_away = True
    outbox = Outbox(Broker("redis://nowhere", "q"))
    outbox.put([1])
    assert sender.asked.acquire(timeout=10)

    sender.is_away = False
    # One of them may still be dropped with the first; the runner tells again.
    while not sender.sent:
        outbox.put([2])
        assert sender.asked.acquire(timeout=10)

    assert set(sender.sent) == {2}


def wish(worker: Worker) -> Wish:
    return worker.wish(1)


def test_one_task_is_claimed_by_its_id_whatever_comes_before_it(worker: Worker, ask: Ask) -> None:
    ask(1, priority=100)
    mine = ask(2)

    (held,) = claim.claim_one(wish(worker), mine, now=worker.clock.now)

    assert held.task_id == mine
    assert claim.claim_one(wish(worker), mine, now=worker.clock.now) == []


@pytest.mark.parametrize("case", ["not due", "paused", "full", "unknown kind", "gone"])
def test_a_task_that_may_not_run_is_not_claimed(worker: Worker, ask: Ask, case: str) -> None:
    now = worker.clock.now
    at = now + timedelta(minutes=1) if case == "not due" else None
    task = ask(1, queue="mail", at=at)
    if case == "paused":
        public.pause_queue("mail", now=now)
    elif case == "full":
        public.limit_queue("mail", 1, now=now)
        assert claim.claim_one(wish(worker), ask(2, queue="mail"), now=now)
    elif case == "unknown kind":
        worker.kinds = ["another"]
    before = reload(task).state

    assert claim.claim_one(wish(worker), task + (case == "gone"), now=now) == []
    assert reload(task).state == before == "pending"


def test_a_suspect_is_claimed_for_a_worker_that_has_nothing_else(worker: Worker, ask: Ask) -> None:
    task = ask(1)
    Task.objects.update(suspect=True)

    assert len(claim.claim_one(wish(worker), task, now=worker.clock.now)) == 1


@pytest.mark.concurrency
@pytest.mark.django_db(transaction=True)
def test_a_message_runs_its_task_once_and_only_that() -> None:
    body = Recorder()
    REGISTRY.add(make_kind("demo", body))
    other, mine = public.request("demo", input="other"), public.request("demo", input="mine")

    for _ in range(2):
        celery.run(mine)

    assert body.inputs == ["mine"]
    assert (reload(mine).state, reload(other).state) == ("finished", "pending")
    runner = Runner.objects.get()
    assert runner.name.startswith("celery@")
    assert runner.stopped_at is not None


@pytest.mark.concurrency
@pytest.mark.django_db(transaction=True)
def test_a_worker_whose_runner_was_pruned_signs_on_again() -> None:
    REGISTRY.add(make_kind("demo"))
    celery.run(public.request("demo"))
    Runner.objects.all().delete()

    task = public.request("demo", now=timezone.now())
    celery.run(task)

    assert reload(task).state == "finished"
    assert Runner.objects.count() == 1
