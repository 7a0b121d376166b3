"""Successes written many at a time: what they answered comes back as it was."""

from datetime import timedelta

import pytest

from scheduler.models import Run
from scheduler.public import request
from scheduler.registry import REGISTRY
from scheduler.rules.outcomes import Succeeded
from tests.clock import ManualClock
from tests.scheduler.make import Worker, make_kind, reload

pytestmark = pytest.mark.django_db

ANSWERS: list[object] = [
    None,
    0,
    "",
    "NULL",
    'a "quoted" \\ word, {braces}',
    "\\\\",
    'ends with \\"',
    "two\nlines\tand 'quotes'",
    "%s %(name)s %%",
    "ő漢\U0001f9ea",
    {"deep": [{"nested": [None, True, 1.5, "x"]}], 'k"ey': "\\"},
    [],
]


@pytest.fixture
def worker(clock: ManualClock) -> Worker:
    REGISTRY.add(make_kind("demo"))
    return Worker(clock)


@pytest.mark.parametrize("answer", ANSWERS, ids=repr)
def test_what_a_body_answered_is_kept_exactly(worker: Worker, answer: object) -> None:
    task_id = request("demo", now=worker.clock.now)
    worker.end(worker.claim_one(), Succeeded(answer))
    assert reload(task_id).result == answer
    assert Run.objects.get().result == answer


@pytest.mark.parametrize("answer", ANSWERS, ids=repr)
def test_a_recurring_task_keeps_it_too(worker: Worker, answer: object) -> None:
    task_id = request("demo", key="k", cron="* * * * *", now=worker.clock.now)
    worker.clock.advance(minutes=1)
    worker.end(worker.claim_one(), Succeeded(answer))
    assert reload(task_id).result == answer


def test_times_are_kept_to_the_microsecond(worker: Worker) -> None:
    clock = worker.clock
    at = clock.now + timedelta(minutes=1, microseconds=123_456)
    task_id = request("demo", at=at, now=clock.now)
    clock.set(at + timedelta(microseconds=1))
    held = worker.claim_one()
    assert (held.due_at, held.not_before) == (at, at)
    clock.set(at + timedelta(microseconds=7))
    worker.end(held)
    run = Run.objects.get(task_id=task_id)
    assert (run.due_at, run.ended_at) == (at, at + timedelta(microseconds=7))
