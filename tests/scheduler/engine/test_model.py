"""Any sequence of requests, claims, ends, crashes and acts: the tables and the model agree."""

import os
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from scheduler import public
from scheduler.engine import reap, runners, startup
from scheduler.engine.claim import Wish
from scheduler.models import Dependency
from scheduler.models import Task as Row
from scheduler.registry import REGISTRY
from scheduler.rules.claims import Claim
from scheduler.rules.fire import Retry
from scheduler.rules.leases import LEASE
from scheduler.rules.outcomes import Failed
from tests.clock import ManualClock
from tests.scheduler.engine.reference import LIVE, OTHER_PERIOD, PERIOD, Scheduler, Task
from tests.scheduler.make import Worker, make_kind, make_runner

LONG = os.environ.get("KANADE_PROVE") == "1"
EXAMPLES, STEPS = (1250, 50) if LONG else (40, 30)
# Some examples are shorter. On two databases the long setting makes 100,000.
LEAST_STEPS = 50_000 if LONG else 800
ALL_KEYS = "abcxyzr"
CRONS = {PERIOD: "*/5 * * * *", OTHER_PERIOD: "*/10 * * * *"}
KEYS = st.sampled_from("abc")
DELAYS = st.sampled_from([None, timedelta(0), timedelta(seconds=40), timedelta(seconds=400)])
RETRIES = st.sampled_from([None, 0, 2])


class PunctualWorker(Worker):
    """A runner that takes nothing a moment early, whatever its clock did before."""

    def wish(self, limit: int = 100) -> Wish:
        """What it asks for."""
        return replace(super().wish(limit), skew=timedelta(0))


class Machine(RuleBasedStateMachine):
    """The real scheduler and the model, step by step."""

    steps = 0

    def __init__(self) -> None:
        """Begin with an empty queue; everything is rolled back afterwards."""
        super().__init__()
        self.atomic = transaction.atomic()
        self.atomic.__enter__()
        self.clock = ManualClock()
        self.worker = PunctualWorker(self.clock, make_runner())
        self.model = Scheduler()
        self.claims: dict[int, Claim] = {}
        self.number = 0
        self.last: tuple[Any, ...] | None = None

    def teardown(self) -> None:
        """Leave nothing behind."""
        transaction.set_rollback(True)
        self.atomic.__exit__(None, None, None)

    def running(self) -> list[Task]:
        """What the model has running."""
        return [one for one in self.model.tasks.values() if one.state == "running"]

    def chosen(self, data: st.DataObject, tasks: list[Task]) -> Task:
        """One of the tasks."""
        by_id = {one.id: one for one in tasks}
        return by_id[data.draw(st.sampled_from(sorted(by_id)))]

    def some(self, *states: str) -> list[Task]:
        """What the model has in these states."""
        return [one for one in self.model.tasks.values() if one.state in states]

    @rule(key=KEYS, delay=DELAYS, retries=RETRIES, recurs=st.booleans(), coalesce=st.booleans())
    def request(
        self,
        key: str,
        delay: timedelta | None,
        retries: int | None,
        *,
        recurs: bool,
        coalesce: bool,
    ) -> None:
        """Ask for a key that may be there in any state."""
        self.number += 1
        delay = None if recurs else delay
        self._request(key, self.number, delay, retries, set(), recurs, coalesce)

    @precondition(lambda self: self.last)
    @rule()
    def duplicate(self) -> None:
        """Ask again for exactly what was asked for last."""
        assert self.last is not None
        self._request(*self.last)

    @rule(data=st.data(), key=st.sampled_from("xyz"), retries=RETRIES, recurs=st.booleans())
    def request_after(
        self, data: st.DataObject, key: str, retries: int | None, *, recurs: bool
    ) -> None:
        """Ask for something that waits for tasks which never wait themselves."""
        others = [one.id for one in self.model.tasks.values() if one.key in "abc"]
        waits = data.draw(st.sets(st.sampled_from(others), max_size=3)) if others else set()
        self.number += 1
        self._request(key, self.number, None, retries, waits, recurs, False)

    def _request(
        self,
        key: str,
        value: int,
        delay: timedelta | None,
        retries: int | None,
        waits: set[int],
        recurs: bool,
        coalesce: bool,
    ) -> None:
        self.last = (key, value, delay, retries, waits, recurs, coalesce)
        task_id = public.request(
            "demo",
            key=key,
            input=value,
            after=delay,
            retry=None if retries is None else Retry(retries, 60, 60),
            cron="*/5 * * * *" if recurs else None,
            depends_on=sorted(waits),
            coalesce=coalesce,
            now=self.clock.now,
        )
        self.model.request(
            task_id,
            key,
            value,
            retries=retries,
            delay=delay,
            recurs=recurs,
            waits=waits,
            coalesce=coalesce,
            now=self.clock.now,
        )

    @rule()
    def claim(self) -> None:
        """A runner takes the next task."""
        expected = self.model.next_claim(self.clock.now, suspect=False)
        self._took(self.worker.claim(1), expected)

    @precondition(lambda self: not self.running())
    @rule()
    def claim_suspect(self) -> None:
        """An idle runner takes a suspect."""
        expected = self.model.next_claim(self.clock.now, suspect=True)
        if expected is not None:
            self._took([self.worker.claim_suspect()], expected)

    def _took(self, claims: list[Claim], expected: Task | None) -> None:
        assert [one.task_id for one in claims] == ([expected.id] if expected else [])
        if expected is not None:
            self.model.claim(expected, self.clock.now)
            (self.claims[expected.id],) = claims

    @precondition(lambda self: self.running())
    @rule(data=st.data())
    def succeed(self, data: st.DataObject) -> None:
        """A body returns."""
        task = self.chosen(data, self.running())
        assert self.worker.end(self.claims.pop(task.id)).lost == []
        self.model.succeed(task, self.clock.now)

    @precondition(lambda self: self.running())
    @rule(data=st.data(), permanent=st.booleans())
    def fail(self, data: st.DataObject, *, permanent: bool) -> None:
        """A body raises."""
        task = self.chosen(data, self.running())
        ended = Failed("boom", permanent=permanent)
        assert self.worker.end(self.claims.pop(task.id), ended).lost == []
        self.model.fail(task, self.clock.now, permanent=permanent)

    @precondition(lambda self: self.running())
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        """A runner is told to stop."""
        task = self.chosen(data, self.running())
        held = self.claims.pop(task.id)
        reap.give_back([(held.task_id, held.token)], now=self.clock.now)
        self.model.give_back(task, self.clock.now)

    @precondition(lambda self: self.running())
    @rule()
    def crash(self) -> None:
        """A runner dies, another frees its leases, and the dead one's ends are refused."""
        stale, self.claims = list(self.claims.values()), {}
        successor = make_runner("successor")
        reaper = reap.Reaper(successor.pk)
        reaper.scan(at=0.0, now=self.clock.now)
        freed = reaper.scan(at=LEASE, now=self.clock.now)
        assert sorted(freed) == sorted(one.id for one in self.running())
        self.model.lose(self.clock.now)
        for held in stale:
            assert self.worker.end(held).lost == [held]
        self.worker = PunctualWorker(self.clock, successor)

    @precondition(lambda self: self.running())
    @rule()
    def beat(self) -> None:
        """A runner that is slow beats in time, and keeps what it holds."""
        reaper = reap.Reaper(make_runner("watcher").pk)
        reaper.scan(at=0.0, now=self.clock.now)
        self.worker.beat()
        assert reaper.scan(at=LEASE, now=self.clock.now) == []

    @rule()
    def restart(self) -> None:
        """A runner leaves as it is told to, and another one begins."""
        for task in self.running():
            held = self.claims.pop(task.id)
            reap.give_back([(held.task_id, held.token)], now=self.clock.now)
            self.model.give_back(task, self.clock.now)
        runners.sign_off(self.worker.runner.pk)
        startup.set_aside_unusable(now=self.clock.now)
        assert startup.register_declared(now=self.clock.now) == 1
        row = Row.objects.of_key("demo", "r").get()
        self.model.request(
            row.pk, "r", None,
            retries=None, delay=None, recurs=True, waits=set(), now=self.clock.now,
        )  # fmt: skip
        self.worker = PunctualWorker(self.clock, make_runner())

    @precondition(lambda self: self.some(*LIVE))
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        """Somebody cancels."""
        task = self.chosen(data, self.some(*LIVE))
        public.cancel(task.id, now=self.clock.now)
        self.model.cancel(task, self.clock.now)

    @precondition(lambda self: self.some("quarantined"))
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        """Somebody lets a task out of quarantine."""
        task = self.chosen(data, self.some("quarantined"))
        public.release(task.id, now=self.clock.now)
        self.model.release(task, self.clock.now)

    @precondition(lambda self: self.some("finished", "failed", "cancelled"))
    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        """Somebody wants a task that is over once more; another one may have its key by now."""
        task = self.chosen(data, self.some("finished", "failed", "cancelled"))
        try:
            with transaction.atomic():
                public.retry_task(task.id, now=self.clock.now)
        except public.TaskStateError:
            assert self.model.live(task.key) is not None
        else:
            assert self.model.live(task.key) is None
            self.model.retry(task, self.clock.now)

    @precondition(lambda self: self.some("pending", "running"))
    @rule(data=st.data())
    def run_now(self, data: st.DataObject) -> None:
        """Somebody is in a hurry."""
        task = self.chosen(data, self.some("pending", "running"))
        try:
            public.run_now(task.id, now=self.clock.now)
        except public.TaskStateError:
            assert task.waits
            assert task.state == "pending"
        else:
            self.model.run_now(task, self.clock.now)

    @precondition(lambda self: self.some("pending"))
    @rule(data=st.data(), seconds=st.sampled_from([-60, 0, 45, 500]))
    def edit_due(self, data: st.DataObject, seconds: int) -> None:
        """Somebody moves the next run."""
        task = self.chosen(data, self.some("pending"))
        at = self.clock.now + timedelta(seconds=seconds)
        public.set_due(task.id, at, now=self.clock.now)
        self.model.edit_due(task, at)

    @precondition(lambda self: self.some(*LIVE))
    @rule(data=st.data(), retries=RETRIES)
    def edit_retries(self, data: st.DataObject, retries: int | None) -> None:
        """Somebody changes the retry policy; a run that has begun keeps the one it began with."""
        task = self.chosen(data, self.some(*LIVE))
        policy = None if retries is None else Retry(retries, 60, 60)
        public.set_retry(task.id, policy, now=self.clock.now)
        task.retries = retries

    @precondition(lambda self: any(one.recurs for one in self.some(*LIVE)))
    @rule(data=st.data(), period=st.sampled_from([PERIOD, OTHER_PERIOD]))
    def edit_cron(self, data: st.DataObject, period: timedelta) -> None:
        """Somebody types another cron, or takes that back."""
        task = self.chosen(data, [one for one in self.some(*LIVE) if one.recurs])
        text = None if period == PERIOD else CRONS[period]
        public.set_cron(task.id, text, now=self.clock.now)
        self.model.edit_period(task, period, self.clock.now)

    @rule()
    def pause_or_resume(self) -> None:
        """Somebody pauses the queue, or lets it go on."""
        self.model.paused = not self.model.paused
        act = public.pause_queue if self.model.paused else public.resume_queue
        act("default", now=self.clock.now)

    @rule(seconds=st.sampled_from([1, 29, 61, 299, 900]))
    def wait(self, seconds: int) -> None:
        """Time passes."""
        self.clock.advance(seconds)

    @rule(seconds=st.sampled_from([-86_400, -3600, -61, 3600, 86_400]))
    def jump(self, seconds: int) -> None:
        """Somebody sets the clock."""
        self.clock.jump(seconds)

    @invariant()
    def agree(self) -> None:
        """Every task is what the model says."""
        Machine.steps += 1
        rows = {row.pk: row for row in Row.objects.all()}
        assert set(rows) == set(self.model.tasks)
        edges = set(Dependency.objects.values_list("task_id", "dependency_id"))
        assert edges == {
            (task.id, other) for task in self.model.tasks.values() for other in task.waits
        }
        for task in self.model.tasks.values():
            assert seen(rows[task.id]) == expected(task)


def seen(row: Row) -> dict[str, object]:
    """What is compared of a row."""
    live = row.state in {"pending", "running", "quarantined"}
    return {
        "key": row.key,
        "state": row.state,
        "input": row.input,
        "due": row.due_at,
        "count": row.retry_count if live else None,
        "attempt": row.attempt if live else None,
        "waits": row.waits_for,
        "rerun": row.rerun,
        "cancelling": row.cancelling,
        "suspect": row.suspect,
        "crashes": row.crash_count,
        "recurs": row.cron is not None,
        "occurrence": row.occurrence_at if live else None,
        "fresh": [row.next_input] if row.replaced else [],
    }


def expected(task: Task) -> dict[str, object]:
    """The same of the model's task."""
    live = task.state in {"pending", "running", "quarantined"}
    return {
        "key": task.key,
        "state": task.state,
        "input": task.input,
        "due": task.due,
        "count": task.count if live else None,
        "attempt": task.attempt if live else None,
        "waits": len(task.waits),
        "rerun": task.rerun,
        "cancelling": task.cancelling,
        "suspect": task.suspect,
        "crashes": task.crashes,
        "recurs": task.recurs,
        "occurrence": task.occurrence if live else None,
        "fresh": task.fresh,
    }


@pytest.mark.django_db
def test_the_scheduler_does_what_its_model_does() -> None:
    REGISTRY.add(make_kind("demo"))
    public.recurring("demo", key="r", cron=CRONS[PERIOD])
    Machine.steps = 0
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            # A short script of a failing case is worth less than the minutes it takes to find.
            phases=[Phase.explicit, Phase.reuse, Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
    # The first look of each example, at an empty queue, is no step.
    assert Machine.steps - EXAMPLES >= LEAST_STEPS
