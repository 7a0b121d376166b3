"""Tasks of every sort, bodies that write to a file, and a runner that may die at its work."""

import os
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType
from unittest.mock import patch

from django.db import transaction
from django.utils import timezone

from scheduler import public
from scheduler.engine import loop as loops
from scheduler.engine import runners, startup
from scheduler.engine.claim import Wish, claim
from scheduler.engine.loop import Clocks, Loop
from scheduler.models import AuditEntry, Dependency, Queue, Run, Runner, Task
from scheduler.registry import REGISTRY, Declared, Kind
from scheduler.rules.fire import Fire, PermanentError, Retry
from tests.faults.forking import Notes, empty

WORKERS = 2
YEARLY = "0 0 1 1 *"
# Only ever waited for by a body whose process is killed meanwhile.
FOR_EVER = 600.0
# The tasks of a round by what they are about, with the state that they have to come to.
GROUPS: dict[str, dict[str, str]] = {
    "chain": {"first": "finished", "after": "finished"},
    "failure": {"bad": "failed", "needs": "failed", "anyway": "finished"},
    "retry": {"flaky": "finished"},
    "later": {"timed": "finished"},
    "limit": {"narrow-1": "finished", "narrow-2": "finished"},
    "cron": {"hourly": "pending"},
    "declared": {"declared": "pending"},
    "hold": {"hold": "finished"},
    "lost": {"lost-1": "finished", "lost-2": "finished"},
    "poison": {"poison": "quarantined"},
}
USUAL = ("chain", "failure", "retry", "later", "limit", "cron", "declared")
TABLES = (Dependency, Run, Task, Runner, Queue, AuditEntry)


@dataclass(slots=True)
class Fate:
    """What happens to the process of a runner, beside the trap on its statements."""

    point_of_death: Callable[[], None] | None = None
    # In the body of `first`: before, between or after its two effects.
    in_body: str = ""
    # A body that stays inside; with `stopping` it asks the runner to leave, twice.
    holding: bool = False
    stopping: bool = False
    beating: bool = False


@dataclass(slots=True)
class World:
    """The tasks of one round by name, and what their bodies wrote."""

    notes: Notes
    ids: dict[str, int] = field(default_factory=dict)
    fate: Fate = field(default_factory=Fate)
    loop: Loop | None = None

    def kinds(self) -> list[Kind]:
        """What the runner knows."""
        return [
            Kind("note", self._note),
            Kind("flaky", self._flaky, on_attempt_failed=self._hook, on_failed=self._hook),
            Kind("bad", self._bad, on_failed=self._hook),
        ]

    # The bodies.

    def _note(self, fire: Fire) -> None:
        self._write("begin", fire)
        self._die_if("before", fire)
        self._write("effect", fire)
        self._die_if("mid", fire)
        self._write("effect", fire)
        self._die_if("after", fire)
        if fire.key == "hold" and self.fate.holding:
            self._stay()
        self._write("end", fire)

    def _stay(self) -> None:
        if self.fate.stopping:
            assert self.loop is not None
            self.loop.stop()
            self.loop.stop()
        threading.Event().wait(FOR_EVER)

    def _flaky(self, fire: Fire) -> None:
        self._write("begin", fire)
        self._write("end", fire)
        if fire.attempt == 1:
            raise OSError("not yet")

    def _bad(self, fire: Fire) -> None:
        self._write("begin", fire)
        self._write("end", fire)
        raise PermanentError("never")

    def _hook(self, fire: Fire, count: int, error: str) -> None:
        self._write("hook", fire)

    def _write(self, word: str, fire: Fire) -> None:
        self.notes.write(f"{word} {fire.key} {fire.attempt} {os.getpid()}")

    def _die_if(self, where: str, fire: Fire) -> None:
        if fire.key == "first" and self.fate.in_body == where:
            assert self.fate.point_of_death is not None
            self.fate.point_of_death()

    # What there is to do.

    def prepare(self, *groups: str) -> None:
        """Ask for the tasks of a round: those of the GROUPS named."""
        empty(*TABLES)
        self.notes.clear()
        self.ids.clear()
        self.fate = Fate()
        REGISTRY.declared.clear()
        now = timezone.now()
        with transaction.atomic():
            for name in groups:
                getattr(self, f"_add_{name}")(now)

    def _add_chain(self, now: datetime) -> None:
        first = self._ask("first", now)
        self._ask("after", now, depends_on=[first])

    def _add_failure(self, now: datetime) -> None:
        bad = self._ask("bad", now, kind="bad")
        self._ask("needs", now, depends_on=[bad], require_success=True)
        self._ask("anyway", now, depends_on=[bad, self.ids["first"]])

    def _add_retry(self, now: datetime) -> None:
        self._ask("flaky", now, kind="flaky", retry=Retry(2, 0, 0))

    def _add_later(self, now: datetime) -> None:
        self._ask("timed", now - timedelta(minutes=2), after=60)

    def _add_limit(self, now: datetime) -> None:
        public.limit_queue("narrow", 1, now=now)
        for name in ("narrow-1", "narrow-2"):
            self._ask(name, now, queue="narrow")

    def _add_cron(self, now: datetime) -> None:
        """Due at the full minute that has just passed, and next in an hour."""
        minute = now.replace(second=0, microsecond=0)
        self._ask("hourly", minute - timedelta(minutes=30), cron=f"{minute.minute} * * * *")

    def _add_declared(self, now: datetime) -> None:
        """A recurring task that every start of a runner registers."""
        options = MappingProxyType[str, object]({"cron": YEARLY, "queue": None})
        REGISTRY.declare(Declared("note", "declared", options))

    def _ask(self, name: str, now: datetime, *, kind: str = "note", **options: object) -> int:
        task = public.request(kind, key=name, now=now, **options)  # type: ignore[arg-type]
        self.ids[name] = task
        return task

    def _add_hold(self, now: datetime) -> None:
        self._ask("hold", now, priority=1)

    def _add_lost(self, now: datetime) -> None:
        for name in ("lost-1", "lost-2"):
            self._ask(name, now, priority=2)
        _claim_by_a_dead_runner(2, now)

    def _add_poison(self, now: datetime) -> None:
        task = self._ask("poison", now, kind="flaky", priority=2)
        _claim_by_a_dead_runner(1, now)
        # It took its process along twice before, alone.
        Task.objects.filter(pk=task).update(suspect=True, crash_count=2)

    # What does it.

    def begin(self) -> Loop:
        """Do what a runner does once, before its first look."""
        now = timezone.now()
        startup.set_aside_unusable(now=now)
        startup.register_declared(now=now)
        runner = runners.sign_on(f"runner-{os.getpid()}", workers=WORKERS, queues=None)
        self.loop = Loop(runner, Clocks(timezone.now, time.monotonic), workers=WORKERS)
        return self.loop

    def work(self, fate: Fate | None = None) -> None:
        """Be a runner from its start until nothing is due."""
        self.fate = fate or Fate()
        with ExitStack() as stack:
            if self.fate.beating:
                stack.enter_context(patch.object(loops, "BEAT_EVERY", 0.0))
            self.begin().run(until_idle=True)


def _claim_by_a_dead_runner(count: int, now: datetime) -> None:
    runner = runners.sign_on("dead", workers=count, queues=None)
    taken = claim(Wish(runner.pk, count, ["note", "flaky"]), now=now)
    assert len(taken) == count
    # No process with this pid began then.
    Runner.objects.filter(pk=runner.pk).update(start_tick=1)
