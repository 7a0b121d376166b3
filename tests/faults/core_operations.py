"""Each operation of the core with what has to be there before it: for faults at its statements."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from scheduler import public
from scheduler.engine import claim, hooks, reap, runners, startup
from scheduler.engine.sift import sift
from scheduler.models import Task
from scheduler.registry import REGISTRY
from scheduler.rules.actors import Actor
from scheduler.rules.claims import Claim
from scheduler.rules.fire import Retry
from scheduler.rules.leases import Lease
from scheduler.rules.outcomes import Ended, Failed, Succeeded
from tests.clock import ManualClock
from tests.scheduler.make import HookRecorder, Recorder, Worker, make_kind, with_hooks

ALICE = Actor("user", "alice")
Operation = Callable[[], object]


@dataclass
class Stage:
    """A clock, a runner that knows `demo` and `hooked`, and requests for them."""

    clock: ManualClock
    worker: Worker

    @classmethod
    def make(cls, clock: ManualClock) -> "Stage":
        """Set it up; call it in `only_kinds`."""
        REGISTRY.add(make_kind("demo", Recorder()))
        REGISTRY.add(with_hooks("hooked", Recorder(), HookRecorder()))
        return cls(clock, Worker(clock))

    def ask(self, key: str = "k", *, kind: str = "demo", **options: Any) -> int:
        """Request a task."""
        return public.request(kind, key=key, now=self.clock.now, **options)

    def waiters_of(self, task: int) -> None:
        """Let one task wait for another's end, and one for its success."""
        self.ask("waits", depends_on=[task])
        self.ask("needs", depends_on=[task], require_success=True)

    def taken(self, **options: Any) -> Claim:
        """Request a task and claim it, with two that wait for it."""
        task = self.ask(**options)
        held = self.worker.claim_one()
        self.waiters_of(task)
        return held

    def late(self, **options: Any) -> list[Claim]:
        """Claims of a task that is long overdue, not yet sifted."""
        self.ask(**options)
        self.clock.advance(hours=3)
        claim.promote(now=self.clock.now)
        return claim.claim(self.worker.wish(), now=self.clock.now)


def _end(ended: Ended, **options: Any) -> Callable[[Stage], Operation]:
    def prepare(stage: Stage) -> Operation:
        held = stage.taken(retry=Retry(1, 5, 5), **options)
        return lambda: stage.worker.end(held, ended)

    return prepare


def _end_of_a_changed_run(stage: Stage) -> Operation:
    held = stage.taken()
    stage.ask(input=2)
    return lambda: stage.worker.end(held)


def _promote(stage: Stage) -> Operation:
    stage.ask(after=60)
    stage.clock.advance(61)
    return lambda: claim.promote(now=stage.clock.now)


def _claim(stage: Stage) -> Operation:
    for key in "abc":
        stage.ask(key)
    return lambda: claim.claim(stage.worker.wish(), now=stage.clock.now)


def _claim_limited(stage: Stage) -> Operation:
    stage.ask(queue="narrow")
    public.limit_queue("narrow", 1, now=stage.clock.now)
    return lambda: claim.claim_limited(stage.worker.wish(), "narrow", now=stage.clock.now)


def _beat(stage: Stage) -> Operation:
    stage.taken()
    return lambda: runners.beat(stage.worker.runner.pk, holds_any=True)


def _sift(misfire: str, *, cron: str | None, after: int | None) -> Callable[[Stage], Operation]:
    def prepare(stage: Stage) -> Operation:
        claims = stage.late(cron=cron, after=after, misfire=misfire)
        return lambda: sift(claims, now=stage.clock.now)

    return prepare


def _sift_unusable(stage: Stage) -> Operation:
    claims = stage.late(cron="0 * * * *")
    spoilt = Task.objects.filter(pk=claims[0].task_id)
    spoilt.update(state="pending", ready=True, runner=None, cron="never")
    found = claim.claim(stage.worker.wish(), now=stage.clock.now)
    return lambda: sift(found, now=stage.clock.now)


def _reap(*, crashes: int) -> Callable[[Stage], Operation]:
    def prepare(stage: Stage) -> Operation:
        held = stage.taken(kind="hooked")
        Task.objects.filter(pk=held.task_id).update(suspect=True, crash_count=crashes)
        lease = Lease(held.task_id, held.token, 1, stage.worker.runner.pk)
        return lambda: reap.free([lease], now=stage.clock.now)

    return prepare


def _reap_a_cancelled_one(stage: Stage) -> Operation:
    held = stage.taken()
    public.cancel(held.task_id, now=stage.clock.now)
    lease = Lease(held.task_id, held.token, 1, stage.worker.runner.pk)
    return lambda: reap.free([lease], now=stage.clock.now)


def _give_back(stage: Stage) -> Operation:
    held = stage.taken()
    return lambda: reap.give_back([(held.task_id, held.token)], now=stage.clock.now)


def _failed_with_hook(stage: Stage) -> int:
    held = stage.taken(kind="hooked", retry=Retry(1, 0, 0))
    stage.worker.fail(held)
    return held.task_id


def _settle_hook(stage: Stage) -> Operation:
    held = stage.taken(kind="hooked", retry=Retry(1, 0, 0))
    (call,) = stage.worker.fail(held).hooks
    return lambda: hooks.settled(call, now=stage.clock.now)


def _take_hook(stage: Stage) -> Operation:
    _failed_with_hook(stage)
    hooks.let_go(stage.worker.runner.pk)
    return lambda: hooks.take_orphans(stage.worker.runner.pk)


def _let_hooks_go(stage: Stage) -> Operation:
    _failed_with_hook(stage)
    return lambda: hooks.let_go(stage.worker.runner.pk)


def _request(there: str) -> Callable[[Stage], Operation]:
    def prepare(stage: Stage) -> Operation:
        other, another = stage.ask("other", after=60), stage.ask("another", after=60)
        if there == "pending":
            stage.ask(depends_on=[other])
        if there == "running":
            stage.ask()
            stage.worker.claim_one()
        return lambda: stage.ask(cron="0 * * * *", depends_on=[other, another])

    return prepare


def _register(stage: Stage) -> Operation:
    public.recurring("demo", key="declared", cron="0 4 * * *")

    def register() -> None:
        # A fault is contained there and logged, as is any trouble of one declaration.
        startup._register(next(iter(REGISTRY.declared.values())), now=stage.clock.now)

    return register


def _set_aside(stage: Stage) -> Operation:
    stage.ask(cron="0 * * * *")
    Task.objects.update(cron="never")
    return lambda: startup.set_aside_unusable(now=stage.clock.now)


def _act(
    act: Callable[..., None], *arguments: object, state: str = "", **options: Any
) -> Callable[[Stage], Operation]:
    """What a person does to a task that is pending, or over, or in quarantine."""

    def prepare(stage: Stage) -> Operation:
        task = stage.ask(**{"after": 60, **options})
        stage.waiters_of(task)
        if state == "over":
            public.cancel(task, now=stage.clock.now)
        elif state:
            Task.objects.filter(pk=task).update(state=state, due_at=None, ready=False)
        at = stage.clock.now + timedelta(seconds=5)
        given = [at if one == "at" else one for one in arguments]
        return lambda: act(task, *given, actor=ALICE, now=stage.clock.now)

    return prepare


def _queue(act: Callable[..., None], *arguments: object) -> Callable[[Stage], Operation]:
    return lambda stage: lambda: act("q", *arguments, actor=ALICE, now=stage.clock.now)


HOURLY: dict[str, Any] = {"cron": "0 * * * *", "after": None}
OPERATIONS: Mapping[str, Callable[[Stage], Operation]] = {
    "promote": _promote,
    "claim": _claim,
    "claim of a limited queue": _claim_limited,
    "beat": _beat,
    "end: success": _end(Succeeded({"a": 1})),
    "end: success, recurring": _end(Succeeded(), cron="0 * * * *", run_on_startup=True),
    "end: success, changed meanwhile": _end_of_a_changed_run,
    "end: retry": _end(Failed("boom")),
    "end: failure": _end(Failed("boom", permanent=True)),
    "end: failure with a hook": _end(Failed("boom", permanent=True), kind="hooked"),
    "occurrence missed, run once": _sift("once", cron="0 * * * *", after=None),
    "occurrence missed, skipped": _sift("skip", cron="30 8 * * *", after=None),
    "one-shot too late": _sift("skip", cron=None, after=60),
    "occurrence unreadable": _sift_unusable,
    "reap": _reap(crashes=0),
    "reap: quarantine": _reap(crashes=2),
    "reap: cancelled meanwhile": _reap_a_cancelled_one,
    "give back": _give_back,
    "hook called": _settle_hook,
    "hook taken": _take_hook,
    "hook let go": _let_hooks_go,
    "request: new": _request("new"),
    "request: pending": _request("pending"),
    "request: running": _request("running"),
    "start-up: register": _register,
    "start-up: set aside": _set_aside,
    "cancel": _act(public.cancel),
    "run now": _act(public.run_now),
    "retry by hand": _act(public.retry_task, state="over"),
    "release": _act(public.release, state="quarantined"),
    "set due": _act(public.set_due, "at"),
    "set retry": _act(public.set_retry, Retry(1, 1, 1)),
    "set cron": _act(public.set_cron, "*/10 * * * *", **HOURLY),
    "pause": _queue(public.pause_queue),
    "limit": _queue(public.limit_queue, 3),
}
