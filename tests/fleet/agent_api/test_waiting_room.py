"""Who waits for a call, and who was called lately."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest

from fleet.agent_api.waiting_room import FullError, WaitingRoom

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
LONG = 30.0


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


def room(
    clock: Clock, *, rate: float = 1000.0, most: int = 100, free: Callable[[], int] = lambda: 100
) -> WaitingRoom:
    return WaitingRoom(calls_per_second=rate, clock=clock, free=free, most=most)


def run(scene: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(20):
            await scene()

    asyncio.run(bounded())


async def settle() -> None:
    """Let every task that can go on do so."""
    for _ in range(5):
        await asyncio.sleep(0)


def begin(waiting: WaitingRoom, agent: int, *, since: datetime = NOW) -> asyncio.Task[bool]:
    return asyncio.create_task(waiting.wait(agent, since=since, seconds=LONG))


def test_a_called_agent_comes_back_and_nobody_else() -> None:
    async def scene() -> None:
        waiting = room(Clock())
        mine, other = begin(waiting, 1), begin(waiting, 2)
        await settle()
        waiting.call([1])
        waiting.pass_on_some()
        await settle()

        assert mine.done()
        assert mine.result() is True
        assert not other.done()
        assert len(waiting) == 1
        other.cancel()

    run(scene)


def test_nobody_is_called_after_the_time_is_up() -> None:
    async def scene() -> None:
        waiting = room(Clock())

        assert await waiting.wait(1, since=NOW, seconds=0.001) is False
        assert len(waiting) == 0

    run(scene)


def test_an_agent_that_was_called_between_its_exchange_and_its_wait_comes_back_at_once() -> None:
    async def scene() -> None:
        clock = Clock()
        waiting = room(clock)
        clock.now = NOW + 5 * SECOND
        waiting.call([1])

        assert await waiting.wait(1, since=NOW + 4 * SECOND, seconds=LONG) is True

    run(scene)


def test_an_agent_that_was_told_and_exchanged_is_not_told_of_the_same_call_again() -> None:
    async def scene() -> None:
        clock = Clock()
        waiting = room(clock)
        first = begin(waiting, 1)
        await settle()
        waiting.call([1])
        clock.now = NOW + SECOND / 4
        waiting.pass_on_some()
        assert await first is True
        # Its exchange, half a second after the call.
        clock.now = NOW + SECOND / 2

        assert await waiting.wait(1, since=clock.now, seconds=0.001) is False
        waiting.call([1])
        assert await waiting.wait(1, since=clock.now, seconds=0.001) is True

    run(scene)


def test_an_agent_that_was_told_and_could_not_exchange_is_told_again() -> None:
    async def scene() -> None:
        clock = Clock()
        waiting = room(clock)
        clock.now = NOW + 2 * SECOND
        waiting.call([1])

        assert await waiting.wait(1, since=NOW, seconds=0.001) is True
        assert await waiting.wait(1, since=NOW, seconds=0.001) is True

    run(scene)


def test_a_ticket_of_a_clock_that_is_a_little_ahead_misses_no_call() -> None:
    async def scene() -> None:
        waiting = room(Clock())
        waiting.call([1])

        assert await waiting.wait(1, since=NOW + SECOND / 2, seconds=0.001) is True

    run(scene)


def test_an_agent_that_exchanged_after_the_call_waits() -> None:
    async def scene() -> None:
        waiting = room(Clock())
        waiting.call([1])

        later = NOW + 2 * SECOND
        assert await waiting.wait(1, since=later, seconds=0.001) is False

    run(scene)


def test_a_call_is_forgotten_after_five_minutes() -> None:
    async def scene() -> None:
        clock = Clock()
        waiting = room(clock)
        waiting.call([1])
        clock.now = NOW + timedelta(minutes=5, seconds=1)
        waiting.call([2])

        assert await waiting.wait(1, since=NOW, seconds=0.001) is False

    run(scene)


def test_everybody_is_called_those_who_wait_and_those_who_come_with_an_older_ticket() -> None:
    async def scene() -> None:
        waiting = room(Clock())
        here = begin(waiting, 1)
        await settle()
        waiting.call_everybody()
        waiting.pass_on_some()

        assert await here is True
        assert await waiting.wait(2, since=NOW, seconds=LONG) is True

    run(scene)


def test_calls_are_passed_on_a_round_at_a_time() -> None:
    async def scene() -> None:
        waiting = room(Clock(), rate=60.0)  # three in a round of 50 ms
        tasks = [begin(waiting, agent) for agent in range(10)]
        await settle()
        waiting.call(range(10))

        done = []
        for _ in range(4):
            waiting.pass_on_some()
            await settle()
            done.append(sum(task.done() for task in tasks))
        assert done == [3, 6, 9, 10]

    run(scene)


def test_a_busy_site_passes_on_no_more_calls_than_it_can_answer_and_always_one() -> None:
    async def scene() -> None:
        free = iter([2, 0, 0, 50])
        waiting = room(Clock(), rate=60.0, free=lambda: next(free))
        tasks = [begin(waiting, agent) for agent in range(7)]
        await settle()
        waiting.call(range(7))

        done = []
        for _ in range(4):
            waiting.pass_on_some()
            await settle()
            done.append(sum(task.done() for task in tasks))
        assert done == [2, 3, 4, 7]

    run(scene)


def test_calls_are_passed_on_by_the_loop_until_none_is_left() -> None:
    async def scene() -> None:
        waiting = room(Clock())
        chore = asyncio.create_task(waiting.pass_on_calls())
        tasks = [begin(waiting, agent) for agent in range(100)]
        await settle()
        waiting.call(range(100))

        assert await asyncio.gather(*tasks) == [True] * 100
        chore.cancel()
        waiting.send_home()

    run(scene)


def test_a_second_wait_of_an_agent_ends_its_first() -> None:
    async def scene() -> None:
        waiting = room(Clock())
        first = begin(waiting, 1)
        await settle()
        second = begin(waiting, 1)
        await settle()

        assert first.result() is False
        assert len(waiting) == 1
        waiting.call([1])
        waiting.pass_on_some()
        assert await second is True

    run(scene)


def test_a_full_room_takes_nobody_in() -> None:
    async def scene() -> None:
        waiting = room(Clock(), most=1)
        first = begin(waiting, 1)
        await settle()

        with pytest.raises(FullError):
            await waiting.wait(2, since=NOW, seconds=LONG)
        assert len(waiting) == 1
        assert not first.done()
        first.cancel()

    run(scene)


def test_an_agent_that_goes_away_leaves_nothing_behind() -> None:
    async def scene() -> None:
        waiting = room(Clock())
        task = begin(waiting, 1)
        await settle()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

        assert len(waiting) == 0
        waiting.call([1])
        waiting.pass_on_some()

    run(scene)


def test_all_are_sent_home_unanswered_when_the_process_stops() -> None:
    async def scene() -> None:
        waiting = room(Clock())
        tasks = [begin(waiting, agent) for agent in range(3)]
        await settle()
        waiting.send_home()

        assert await asyncio.gather(*tasks) == [False, False, False]

    run(scene)
