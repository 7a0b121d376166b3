"""Who waits for a call, and who was called lately. One room per process, on its event loop.

A waiter is a future: it costs no thread, no connection and no query. Everyone who is called comes
back at once with an exchange, and a little later with what came of it: so calls are passed on at a
bounded rate, and hardly any while the site is busy with those who were called before.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

# How long a call is remembered for those who were between an exchange and their wait.
REMEMBERED_FOR = timedelta(minutes=5)
# The clocks of the server that wrote a ticket and of this one may differ a little.
CLOCK_LEEWAY = timedelta(seconds=1)
MOST_WAITERS = 20_000
ROUND = 0.05
# Even a site that is always busy gets on with its calls.
LEAST_PER_ROUND = 1


class FullError(Exception):
    """No more waiters fit."""


class WaitingRoom:
    """Waiters by agent. Everything happens on one event loop, so nothing needs a lock.

    `free` tells how many more requests the site could begin to answer at this moment.
    """

    def __init__(
        self,
        *,
        calls_per_second: float,
        clock: Callable[[], datetime],
        free: Callable[[], int],
        most: int = MOST_WAITERS,
    ) -> None:
        self._per_round = max(LEAST_PER_ROUND, round(calls_per_second * ROUND))
        self._clock = clock
        self._free = free
        self._most = most
        self._waiters: dict[int, asyncio.Future[bool]] = {}
        self._called: dict[int, datetime] = {}
        self._all_called_at: datetime | None = None
        # When a waiter was last told of its call.
        self._told: dict[int, datetime] = {}
        self._line: deque[int] = deque()
        self._somebody_in_line = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiters)

    async def wait(self, agent_id: int, *, since: datetime, seconds: float) -> bool:
        """Return True once the agent is called, or was since `since`; False after `seconds`.

        An agent waits once: a second wait ends its first, unanswered. Raises FullError.
        """
        if self._was_called(agent_id, since):
            self._note_told(agent_id)
            return True
        former = self._waiters.get(agent_id)
        if former is None and len(self._waiters) >= self._most:
            raise FullError
        if former is not None and not former.done():
            former.set_result(False)
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiters[agent_id] = waiter
        try:
            async with asyncio.timeout(seconds):
                return await waiter
        except TimeoutError:
            return False
        finally:
            if self._waiters.get(agent_id) is waiter:
                del self._waiters[agent_id]

    def call(self, agent_ids: Iterable[int]) -> None:
        """Call these agents: those who wait, in turn, and those who come with an older ticket."""
        now = self._clock()
        for agent_id in agent_ids:
            self._called.pop(agent_id, None)
            self._called[agent_id] = now
            self._put_in_line(agent_id)
        self._forget_before(now - REMEMBERED_FOR)

    def call_everybody(self) -> None:
        """Call all agents."""
        self._all_called_at = self._clock()
        self._forget_before(self._all_called_at - REMEMBERED_FOR)
        for agent_id in self._waiters:
            self._put_in_line(agent_id)

    def send_home(self) -> None:
        """End all waits, unanswered: the process stops."""
        for waiter in self._waiters.values():
            if not waiter.done():
                waiter.set_result(False)

    async def pass_on_calls(self) -> None:
        """Pass calls on to waiters, a round at a time, until cancelled."""
        while True:
            await self._somebody_in_line.wait()
            self.pass_on_some()
            await asyncio.sleep(ROUND)

    def pass_on_some(self) -> None:
        """Pass on as many calls as one round may."""
        passed = 0
        most = max(LEAST_PER_ROUND, min(self._per_round, self._free()))
        while self._line and passed < most:
            agent_id = self._line.popleft()
            waiter = self._waiters.get(agent_id)
            if waiter is not None and not waiter.done():
                waiter.set_result(True)
                self._note_told(agent_id)
                passed += 1
        if not self._line:
            self._somebody_in_line.clear()

    def _put_in_line(self, agent_id: int) -> None:
        if agent_id in self._waiters:
            self._line.append(agent_id)
            self._somebody_in_line.set()

    def _was_called(self, agent_id: int, since: datetime) -> bool:
        """Whether there was a call that an exchange at `since` cannot have answered.

        An agent exchanges once it is told, so of two times close to each other the told one is the
        earlier.
        """
        told = self._told.get(agent_id)
        calls = (self._called.get(agent_id), self._all_called_at)
        return any(
            at is not None
            and (at >= since or (at >= since - CLOCK_LEEWAY and (told is None or told < at)))
            for at in calls
        )

    def _note_told(self, agent_id: int) -> None:
        self._told.pop(agent_id, None)
        self._told[agent_id] = self._clock()

    def _forget_before(self, limit: datetime) -> None:
        # The dictionaries keep the order of calls, so that the oldest are in front.
        for times in (self._called, self._told):
            while times:
                agent_id, at = next(iter(times.items()))
                if at >= limit:
                    break
                del times[agent_id]
