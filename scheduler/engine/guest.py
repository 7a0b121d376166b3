"""A runner that works only while it is asked to, inside a process of somebody else's.

Celery's workers are such: a message comes, the loop works until there is nothing more to do, and
the process waits for the next message.
"""

import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models.functions import Now

from scheduler.engine import claim, runners
from scheduler.engine.intake import Intake, Taken
from scheduler.engine.loop import Clocks, Loop
from scheduler.engine.sift import sift
from scheduler.models import Runner


@dataclass(slots=True)
class OneTask(Intake):
    """Takes the one task that it was told of, and nothing else."""

    wanted: int | None = None

    def look_around(self, *, at: float, now: datetime) -> None:
        """Look at nothing: whether its queue is limited is asked with the claim."""

    def fill(self, *, at: float, now: datetime) -> Taken:  # noqa: ARG002  # as any intake
        """Claim the task, if nobody has."""
        task_id, self.wanted = self.wanted, None
        claims = [] if task_id is None else claim.claim_one(self._wish(1), task_id, now=now)
        self.hand.take(sift(claims, now=now))
        return Taken(len(claims), more=False, next_due=None)


@dataclass(slots=True)
class Guest:
    """The loop of this process, made by its first use."""

    clock: Callable[[], datetime]
    name: str
    workers: int = 1
    _loop: Loop | None = None
    _one_at_a_time: threading.Lock = field(default_factory=threading.Lock)

    @property
    def has_begun(self) -> bool:
        """Whether it has worked in this process."""
        return self._loop is not None

    def work_off(self) -> bool:
        """Run all that is due; return False if that is being done already."""
        if not self._one_at_a_time.acquire(blocking=False):
            return False
        try:
            self._signed_on().work(until_idle=True)
        finally:
            self._one_at_a_time.release()
        return True

    def run_one(self, task_id: int) -> None:
        """Claim one task and run it, unless somebody else has it or it is not due."""
        with self._one_at_a_time:
            loop = self._signed_on()
            loop.intake = OneTask(loop.hand, wanted=task_id)
            loop.work(until_idle=True)
            # It says nothing until the next message, which is no reason to worry.
            runners.sign_off(loop.runner.pk)

    def _signed_on(self) -> Loop:
        """Return the loop, its runner known to be there. A fork makes a runner of its own."""
        if self._loop is not None:
            there = Runner.objects.filter(pk=self._loop.runner.pk)
            if there.update(stopped_at=None, last_tick_at=Now()):
                return self._loop
            # Pruned, after days without work.
            self._loop.hand.executor.stop()
        runner = runners.sign_on(self.name, workers=self.workers, queues=None)
        self._loop = Loop(runner, Clocks(self.clock, time.monotonic), workers=self.workers)
        return self._loop


def host() -> str:
    """Return the name of this machine, for the name of a guest."""
    return socket.gethostname()
