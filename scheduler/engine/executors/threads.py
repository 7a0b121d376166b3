"""Run bodies and hooks in threads of this process."""

import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from django.db import close_old_connections, connections

from scheduler.engine.execute import call_hook, execute
from scheduler.engine.hooks import HookCall, prepare
from scheduler.rules.claims import Claim, Ending
from scheduler.rules.pace import Pace

Job = Claim | HookCall
# While more jobs wait, what ended is reported at most this often, in seconds: short bodies are
# written many at a time.
PROMPTNESS = 0.01


@dataclass(slots=True)
class Ended:
    """What the threads have to report since they were last asked."""

    bodies: list[Ending] = field(default_factory=list)
    hooks: list[HookCall] = field(default_factory=list)
    # Never begun, because the lease may be somebody else's by now.
    not_begun: list[Claim] = field(default_factory=list)


class Threads:
    """A fixed number of threads behind one queue of jobs."""

    def __init__(
        self,
        workers: int,
        *,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float],
        may_start: Callable[[], bool],
        on_ended: Callable[[], None],
    ) -> None:
        """Start the threads. `may_start` is asked before each body, `on_ended` called after."""
        self.workers = workers
        self.pace = Pace()
        self._clock, self._monotonic = clock, monotonic
        self._may_start, self._on_ended = may_start, on_ended
        self._jobs: deque[Job] = deque()
        self._ended = Ended()
        self._collected_at = monotonic()
        self._changed = threading.Condition()
        self._stopping = False
        self._threads = [
            threading.Thread(target=self._work, name=f"worker-{number}", daemon=True)
            for number in range(1, workers + 1)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, jobs: Iterable[Job]) -> None:
        """Hand over bodies and hooks; hooks go first, for their tasks wait for them."""
        with self._changed:
            before = len(self._jobs)
            for job in jobs:
                if isinstance(job, HookCall):
                    self._jobs.appendleft(job)
                else:
                    self._jobs.append(job)
            self._changed.notify(len(self._jobs) - before)

    def collect(self) -> Ended:
        """Return what ended since the last call."""
        with self._changed:
            ended, self._ended = self._ended, Ended()
            self._collected_at = self._monotonic()
        return ended

    def take_back(self) -> list[Claim]:
        """Return bodies that no thread has begun, and forget them."""
        with self._changed:
            waiting = [job for job in self._jobs if isinstance(job, Claim)]
            self._jobs = deque(job for job in self._jobs if not isinstance(job, Claim))
        return waiting

    def stop(self) -> None:
        """Let the threads end after what they are doing now."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def join(self, timeout: float) -> None:
        """Wait for the threads, each at most `timeout` seconds."""
        for thread in self._threads:
            thread.join(timeout)

    def _work(self) -> None:
        try:
            while (job := self._next()) is not None:
                self._do(job)
        finally:
            connections.close_all()

    def _next(self) -> Job | None:
        with self._changed:
            while not self._jobs and not self._stopping:
                self._changed.wait()
            return self._jobs.popleft() if self._jobs and not self._stopping else None

    def _do(self, job: Job) -> None:
        if isinstance(job, HookCall):
            call_hook(lambda: prepare(job))
            self._report(lambda ended: ended.hooks.append(job))
        elif not self._may_start():
            self._report(lambda ended: ended.not_begun.append(job))
        else:
            began = self._monotonic()
            ending = execute(job, self._clock)
            self.pace.note(self._monotonic() - began)
            self._report(lambda ended: ended.bodies.append(ending))
        # A body may have left a connection that is broken or too old.
        close_old_connections()

    def _report(self, add: Callable[[Ended], None]) -> None:
        with self._changed:
            add(self._ended)
            waits_for_more = bool(self._jobs)
        # A look at the clock for each, a wake only where it pays.
        if not waits_for_more or self._monotonic() - self._collected_at >= PROMPTNESS:
            self._on_ended()
