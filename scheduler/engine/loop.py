"""The runner: single passes over the queue, and a wait that ends when there is work.

One thread talks to the database about tasks; bodies run in threads of their own. Each pass writes
what ended, keeps the leases, and takes what is due.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from django.db import Error as DatabaseError
from django.db import connection

from scheduler.engine import hooks, runners, wakeup
from scheduler.engine.executors.threads import Threads
from scheduler.engine.hand import Hand
from scheduler.engine.intake import Intake, Taken
from scheduler.engine.reap import Reaper
from scheduler.models import Runner
from scheduler.rules.leases import BEAT_EVERY, SCAN_EVERY, may_still_start

logger = logging.getLogger(__name__)

# Seconds.
DRAIN = 25.0
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
# A task taken ahead that has not begun by then goes to whoever is free.
STUCK_AHEAD = 1.0
LONGEST_WAIT = wakeup.LONGEST_WAIT.total_seconds()


@dataclass(frozen=True, slots=True)
class Clocks:
    """The two clocks of a runner: the time of day, and seconds that never go back."""

    now: Callable[[], datetime]
    monotonic: Callable[[], float]


@dataclass(slots=True)
class Loop:
    """One runner at work."""

    runner: Runner
    clocks: Clocks
    workers: int = 1
    queues: tuple[str, ...] | None = None
    # Take only what is due by then, and judge leases by one look.
    cutoff: datetime | None = None
    is_idle: bool = False
    hand: Hand = field(init=False)
    intake: Intake = field(init=False)
    reaper: Reaper = field(init=False)
    _stop_at: float | None = None
    _last_beat: float = 0.0
    _last_scan: float = float("-inf")
    _last_take: float = 0.0
    _must_recover: bool = False
    _pause: float = FIRST_PAUSE

    def __post_init__(self) -> None:
        """Start the threads."""
        self._last_beat = self.clocks.monotonic()
        executor = Threads(
            self.workers,
            clock=self.clocks.now,
            monotonic=self.clocks.monotonic,
            may_start=lambda: may_still_start(self._last_beat, at=self.clocks.monotonic()),
            on_ended=wakeup.DUE.set,
        )
        self.hand = Hand(self.runner, executor)
        self.intake = Intake(self.hand, self.queues, self.cutoff)
        self.reaper = Reaper(self.runner.pk)

    def run(self, *, until_idle: bool = False) -> None:
        """Work until told to stop, or until nothing is due and nothing runs; then leave."""
        self.work(until_idle=until_idle)
        self._leave()

    def work(self, *, until_idle: bool) -> None:
        """Make passes until told to stop, or until nothing is due and nothing runs."""
        while True:
            # Cleared before the look, so that a wake during it is not lost.
            wakeup.DUE.clear()
            wait = self.guarded_step()
            if self._is_over(until_idle=until_idle):
                return
            wakeup.DUE.wait(wait)

    def stop(self) -> None:
        """Take nothing more and let bodies end for DRAIN seconds; a second call ends that."""
        now = self.clocks.monotonic()
        self._stop_at = now + DRAIN if self._stop_at is None else now
        wakeup.DUE.set()

    def guarded_step(self) -> float:
        """Make one pass; a database that fails is tried again after a growing pause."""
        try:
            if self._must_recover:
                self.hand.recover(now=self.clocks.now())
                self._must_recover = False
            wait = self.step()
        except DatabaseError:
            logger.exception("database error", extra={"action": "database error"})
            connection.close()
            self._must_recover, self.is_idle = True, False
            wait, self._pause = self._pause, min(self._pause * 2, LONGEST_PAUSE)
            return wait
        self._pause = FIRST_PAUSE
        return wait

    def step(self) -> float:
        """Make one pass; return how many seconds may pass until the next."""
        now, at = self.clocks.now(), self.clocks.monotonic()
        self.hand.write_ended(now=now)
        if at - self._last_beat >= BEAT_EVERY:
            self._beat(at, now)
        if self._stop_at is not None:
            self.hand.give_back(self.hand.executor.take_back(), now=now)
            return min(BEAT_EVERY, max(0.0, self._stop_at - at))
        if at - self._last_scan >= SCAN_EVERY:
            self._scan(at, now)
        self._free_the_stuck(at, now)
        taken = self.intake.fill(at=at, now=now)
        if taken.count:
            self._last_take = at
        self.is_idle = self.hand.is_empty and not taken.count and not taken.more
        return self._wait(taken, at, now)

    def _is_over(self, *, until_idle: bool) -> bool:
        if self._stop_at is None:
            return until_idle and self.is_idle
        return self.hand.is_empty or self.clocks.monotonic() >= self._stop_at

    def _beat(self, at: float, now: datetime) -> None:
        if not may_still_start(self._last_beat, at=at):
            # This process stood still: others may hold by now what it has not begun.
            self.hand.give_back(self.hand.executor.take_back(), now=now)
        runners.beat(self.runner.pk, holds_any=bool(self.hand.claims or self.hand.calling))
        self._last_beat = at

    def _scan(self, at: float, now: datetime) -> None:
        """Look for abandoned leases and hooks, and for what changes seldom."""
        if self.cutoff is None:
            self.reaper.scan(at=at, now=now)
        else:
            self.reaper.sweep(now=now)
        self.hand.call(hooks.take_orphans(self.runner.pk))
        self.intake.look_around(at=at, now=now)
        self._last_scan = at

    def _free_the_stuck(self, at: float, now: datetime) -> None:
        """Give back what was taken ahead of bodies that turned out to be long."""
        if self.hand.ahead and at - self._last_take >= STUCK_AHEAD:
            self.hand.executor.pace.stall()
            self.hand.give_back(self.hand.executor.take_back(), now=now)

    def _wait(self, taken: Taken, at: float, now: datetime) -> float:
        if taken.more:
            return 0.0
        until = min(LONGEST_WAIT, self._last_beat + BEAT_EVERY - at)
        until = min(until, self._last_scan + SCAN_EVERY - at)
        if taken.next_due is not None:
            until = min(until, (taken.next_due - now).total_seconds())
        return max(0.0, until)

    def _leave(self) -> None:
        """Give back what still runs, so that others need not wait for its leases to lapse."""
        self.hand.executor.stop()
        try:
            self.hand.write_ended(now=self.clocks.now())
            self.hand.give_back(list(self.hand.claims.values()), now=self.clocks.now())
            hooks.let_go(self.runner.pk)
            runners.sign_off(self.runner.pk)
        except DatabaseError:
            # Others free the leases in their time.
            logger.exception("left without a word", extra={"action": "database error"})
