"""One kind `demo` with a body and hooks that take notes, and a runner driven by hand."""

from collections.abc import Callable
from typing import Any

import pytest

from scheduler import public
from scheduler.registry import REGISTRY
from tests.clock import ManualClock
from tests.scheduler.make import HookRecorder, Recorder, Worker, with_hooks

Ask = Callable[..., int]


@pytest.fixture
def body() -> Recorder:
    """The body of `demo`."""
    return Recorder()


@pytest.fixture
def hooks() -> HookRecorder:
    """The hooks of `demo`."""
    return HookRecorder()


@pytest.fixture
def worker(clock: ManualClock, body: Recorder, hooks: HookRecorder) -> Worker:
    """A runner that knows `demo`."""
    REGISTRY.add(with_hooks("demo", body, hooks))
    return Worker(clock)


@pytest.fixture
def ask(clock: ManualClock, worker: Worker) -> Ask:
    """Request `demo` at the clock's time: ask(input, key=…, …)."""

    def asked(number: object = None, **options: Any) -> int:
        return public.request("demo", input=number, now=clock.now, **options)

    return asked
