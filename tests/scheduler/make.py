"""Builders with quiet defaults, and the engine's steps as one call each."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from unittest.mock import patch

from scheduler.engine import hooks, runners
from scheduler.engine.claim import Wish, claim, claim_suspect, promote
from scheduler.engine.execute import call_hook, execute
from scheduler.engine.finish import Finished, finish
from scheduler.engine.sift import sift
from scheduler.models import Run, Runner, Task
from scheduler.registry import REGISTRY, Handler, Hook, Kind
from scheduler.rules.claims import Claim, Ending
from scheduler.rules.fire import Fire
from scheduler.rules.outcomes import Ended, Failed, Succeeded
from scheduler.rules.states import Outcome
from tests.clock import ManualClock


@contextmanager
def only_kinds(*kinds: Kind) -> Iterator[None]:
    """Let the registry know these kinds and nothing else."""
    with patch.multiple(
        REGISTRY, kinds={kind.name: kind for kind in kinds}, declared={}, pruners={}
    ):
        yield


def make_runner(name: str = "runner-a", **fields: object) -> Runner:
    """A runner row, as a process makes it when it starts."""
    return Runner.objects.create(**{"name": name, "host": "host-a", "pid": 4711, **fields})


@dataclass
class Worker:
    """One runner driven by hand: claim, execute and finish are separate steps."""

    clock: ManualClock
    runner: Runner = field(default_factory=make_runner)
    kinds: Sequence[str] | None = None

    def wish(self, limit: int = 100) -> Wish:
        """What it asks for."""
        kinds = self.kinds if self.kinds is not None else list(REGISTRY.kinds)
        return Wish(runner_id=self.runner.pk, limit=limit, kinds=kinds)

    def claim(self, limit: int = 100) -> list[Claim]:
        """Claim what is due now and is to run."""
        promote(now=self.clock.now)
        return sift(claim(self.wish(limit), now=self.clock.now), now=self.clock.now)

    def claim_one(self) -> Claim:
        """Claim the one task that is due."""
        (found,) = self.claim(limit=1)
        return found

    def claim_suspect(self) -> Claim:
        """Claim the one task that has to run alone."""
        promote(now=self.clock.now)
        (found,) = sift(claim_suspect(self.wish(1), now=self.clock.now), now=self.clock.now)
        return found

    def beat(self) -> None:
        """Keep the leases."""
        runners.beat(self.runner.pk, holds_any=True)

    def call_orphaned_hooks(self) -> int:
        """Call the hooks that nobody is about to call; return how many."""
        calls = hooks.take_orphans(self.runner.pk)
        self.call_hooks(Finished(hooks=calls))
        return len(calls)

    def end(self, held: Claim, ended: Ended | None = None) -> Finished:
        """Finish a claim as if its body had ended so."""
        ending = Ending(held, ended or Succeeded(), self.clock.now)
        return finish([ending], runner_name=self.runner.name, now=self.clock.now)

    def fail(self, held: Claim, error: str = "boom", *, permanent: bool = False) -> Finished:
        """Finish a claim as failed."""
        return self.end(held, Failed(error, permanent=permanent))

    def call_hooks(self, report: Finished) -> None:
        """Call the hooks of what was just finished, as the runner does after the commit."""
        for call in report.hooks:
            call_hook(partial(hooks.prepare, call))
            hooks.settled(call, now=self.clock.now)

    def end_and_call_hooks(self, held: Claim, ended: Ended | None = None) -> None:
        """Finish a claim, then call its hook."""
        self.call_hooks(self.end(held, ended))

    def run_due_and_hooks(self, limit: int = 100) -> int:
        """Claim what is due, run and finish it, call the hooks; return how many bodies ran."""
        endings = [execute(held, self.clock) for held in self.claim(limit)]
        self.call_hooks(finish(endings, runner_name=self.runner.name, now=self.clock.now))
        return len(endings)

    def run_due(self, limit: int = 100) -> int:
        """Claim what is due, run the bodies, finish them; return how many."""
        endings = [execute(held, self.clock) for held in self.claim(limit)]
        if endings:
            finish(endings, runner_name=self.runner.name, now=self.clock.now)
        return len(endings)


@dataclass
class Recorder:
    """A body that notes what it was called with and does what it is told to."""

    fires: list[Fire] = field(default_factory=list)
    answers: dict[int, Callable[[Fire], object]] = field(default_factory=dict)
    always: Callable[[Fire], object] | None = None

    def __call__(self, fire: Fire) -> object:
        """Run, as the n-th call says."""
        self.fires.append(fire)
        answer = self.answers.get(len(self.fires), self.always)
        return answer(fire) if answer else None

    @property
    def inputs(self) -> list[object]:
        """What it was called with, in order."""
        return [fire.input for fire in self.fires]


@dataclass
class HookRecorder:
    """Hooks that note their calls as (hook, number)."""

    calls: list[tuple[str, int]] = field(default_factory=list)

    def on_attempt_failed(self, fire: Fire, count: int, error: str) -> None:
        """Note it."""
        self.calls.append(("attempt failed", count))

    def on_failed(self, fire: Fire, count: int, error: str) -> None:
        """Note it."""
        self.calls.append(("failed", count))


def make_kind(name: str = "demo", handler: Handler | None = None) -> Kind:
    """A kind whose body does nothing unless told otherwise."""
    return Kind(name, handler or Recorder())


def with_hooks(name: str, handler: Handler, hooks: HookRecorder) -> Kind:
    """A kind that reports its failures to `hooks`."""
    failed: Hook = hooks.on_failed
    attempt: Hook = hooks.on_attempt_failed
    return Kind(name, handler, on_attempt_failed=attempt, on_failed=failed)


def outcomes_of(task_id: int) -> list[Outcome]:
    """The history of a task, oldest first."""
    found = Run.objects.filter(task_id=task_id).order_by("pk").values_list("outcome", flat=True)
    return [Outcome(one) for one in found]


def reload(task_id: int) -> Task:
    """The row as it is now."""
    return Task.objects.get(pk=task_id)


def due_of(task_id: int) -> datetime | None:
    """When it is due."""
    return reload(task_id).due_at
