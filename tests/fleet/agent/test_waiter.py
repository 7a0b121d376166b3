"""Waiting to be called: a hint, bounded, and never a busy loop."""

import threading
from collections.abc import Callable, Iterator

import pytest

from fleet.agent.transport import Reply, UnreachableError
from fleet.agent.waiter import Waiter
from tests.fleet.agent.until import until

Answer = Callable[[], Reply]


class Line:
    """A way to the server whose answers the test writes; without one it waits."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answers: list[Answer] = []
        self.go = threading.Semaphore(0)
        self.is_closed = False

    def request(self, method: str, path: str, *, timeout_s: float) -> Reply:
        self.asked.append(path)
        self.go.acquire()
        return self.answers.pop(0)()

    def close(self) -> None:
        self.is_closed = True

    def answer(self, answer: Answer) -> None:
        self.answers.append(answer)
        self.go.release()


def status(number: int) -> Answer:
    return lambda: Reply(number, b"")


def broken() -> Reply:
    raise UnreachableError("gone")


class Rig:
    """A waiter on a line, with a clock that the test moves."""

    def __init__(self) -> None:
        self.line, self.calls = Line(), 0
        self.waiter = Waiter(self.line, on_call=self.called)  # type: ignore[arg-type]  # a line
        self.waiter.start()

    def called(self) -> None:
        self.calls += 1

    def asked(self, count: int) -> None:
        until(lambda: len(self.line.asked) == count, what=f"{count} waits")


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [0.0]
    monkeypatch.setattr("fleet.agent.waiter.steady_seconds", lambda: clock[0])
    return clock


@pytest.fixture
def rig(at: list[float]) -> Iterator[Rig]:
    made = Rig()
    yield made
    made.waiter.stop()
    made.waiter.offer("")
    made.line.answer(status(500))
    made.waiter.join(20)
    assert not made.waiter.is_alive()
    assert made.line.is_closed


def test_a_call_is_passed_on_and_the_ticket_is_used_up(rig: Rig) -> None:
    rig.waiter.offer("t 1&x")
    rig.asked(1)
    assert rig.line.asked[0] == "/api/agent/v1/wait?ticket=t%201%26x&timeout=50"
    rig.line.answer(status(200))
    until(lambda: rig.calls == 1, what="the call")
    rig.waiter.offer("t2")
    rig.asked(2)
    assert "ticket=t2" in rig.line.asked[1]


def test_after_a_quiet_wait_the_same_ticket_waits_on(rig: Rig, at: list[float]) -> None:
    rig.waiter.offer("t1")
    rig.asked(1)
    at[0] = 50.0
    rig.line.answer(status(204))
    rig.asked(2)
    assert rig.line.asked[0] == rig.line.asked[1]
    assert rig.calls == 0


@pytest.mark.parametrize(
    "answer",
    [status(204), status(401), status(404), status(503), broken],
    ids=["204", "401", "404", "503", "broken"],
)
def test_an_answer_that_was_no_wait_is_not_asked_for_again(rig: Rig, answer: Answer) -> None:
    rig.waiter.offer("t1")
    rig.asked(1)
    rig.line.answer(answer)
    until(lambda: not rig.waiter._ticket, what="the ticket to be put down")
    assert (len(rig.line.asked), rig.calls) == (1, 0)
    rig.waiter.offer("t2")
    rig.asked(2)
