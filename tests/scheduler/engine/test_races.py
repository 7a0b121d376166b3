"""Real threads on real connections. Each race has a twin with stale copies elsewhere."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from django.db import OperationalError, connections

from scheduler import public
from scheduler.engine import claim
from scheduler.engine.claim import Wish
from scheduler.engine.finish import finish
from scheduler.models import Dependency, Run, Runner, Task
from scheduler.registry import REGISTRY
from scheduler.rules.claims import Ending
from scheduler.rules.graph import DependencyError
from scheduler.rules.outcomes import Succeeded
from scheduler.rules.states import TaskState
from tests.clock import ManualClock
from tests.scheduler.make import Worker, make_kind, make_runner, reload

pytestmark = [pytest.mark.concurrency, pytest.mark.django_db(transaction=True)]
# Only ever reached by a test that fails.
PATIENCE = 60


@pytest.fixture(autouse=True)
def demo() -> None:
    REGISTRY.add(make_kind("demo"))


def at_once(*jobs: Callable[[], Any]) -> list[Any]:
    """Run the jobs in threads that start together; return answers or errors in order."""
    barrier = threading.Barrier(len(jobs))

    def work(job: Callable[[], Any]) -> Any:
        try:
            barrier.wait(PATIENCE)
            return job()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(jobs)) as pool:
        futures = [pool.submit(work, job) for job in jobs]
    return [one.exception() or one.result() for one in futures]


def ask(clock: ManualClock, number: object = None, **options: Any) -> int:
    return public.request("demo", input=number, now=clock.now, **options)


def drain(clock: ManualClock, runner: Runner) -> list[int]:
    """Claim and finish five at a time until nothing is left; return what was claimed."""
    taken: list[int] = []
    while claims := claim.claim(Wish(runner.pk, 5, ["demo"]), now=clock.now):
        taken += [one.task_id for one in claims]
        ended = [Ending(one, Succeeded(), clock.now) for one in claims]
        finish(ended, runner_name=runner.name, now=clock.now)
    return taken


def test_four_runners_run_sixty_tasks_once_each(clock: ManualClock) -> None:
    tasks = [ask(clock, number) for number in range(60)]
    runners = [make_runner(f"runner-{number}") for number in range(4)]

    answers = at_once(*[partial(drain, clock, one) for one in runners])

    assert Counter(task for taken in answers for task in taken) == Counter(tasks)
    assert Run.objects.count() == 60
    assert set(Task.objects.values_list("state", flat=True)) == {TaskState.FINISHED.value}


def test_first_requests_for_a_key_share_one_row(clock: ManualClock) -> None:  # X13
    answers = at_once(*[partial(ask, clock, number, key="k") for number in range(6)])

    assert len(set(answers)) == 1
    row = Task.objects.get()
    assert (row.pk, row.generation) == (answers[0], 6)


def test_dependencies_that_end_together_free_their_dependent_once(  # X65
    clock: ManualClock,
) -> None:
    for _ in range(5):
        tasks = [ask(clock, number) for number in range(3)]
        last = ask(clock, "last", depends_on=tasks)
        workers = [Worker(clock, make_runner(f"runner-{number}")) for number in range(3)]
        held = [worker.claim(1)[0] for worker in workers]

        at_once(*[partial(worker.end, one) for worker, one in zip(workers, held, strict=True)])

        row = reload(last)
        assert (row.waits_for, row.ready) == (0, True)
        Task.objects.filter(pk=last).update(
            state=TaskState.FINISHED.value, ready=False, due_at=None, ended_at=clock.now
        )


def test_an_end_and_a_registration_at_once_never_miss_each_other(  # X57
    clock: ManualClock,
) -> None:
    worker = Worker(clock)
    for _ in range(10):
        first = ask(clock, "first")
        held = worker.claim_one()

        _, second = at_once(
            partial(worker.end, held),
            partial(ask, clock, "second", depends_on=[first]),
        )

        again = worker.claim_one()
        assert again.task_id == second
        worker.end(again)
    assert Dependency.objects.count() == 0


def test_an_end_and_a_request_at_once_lose_nothing(clock: ManualClock) -> None:  # T29, X15
    worker = Worker(clock)
    for number in range(10):
        ask(clock, "old", key=str(number))
        held = worker.claim_one()

        at_once(
            partial(worker.end, held),
            partial(ask, clock, "new", key=str(number)),
        )

        again = worker.claim_one()
        assert again.input == "new"
        worker.end(again)
        assert worker.claim() == []


def test_requests_that_would_close_a_circle_together_are_not_all_taken(  # X60
    clock: ManualClock,
) -> None:
    tasks = [ask(clock, key=str(number), after=60) for number in range(4)]

    def wait_for_next(number: int) -> int:
        # Two that lock each other out are asked again, as callers do.
        for _ in range(10):
            with suppress(OperationalError):
                return ask(clock, key=str(number), after=60, depends_on=[tasks[(number + 1) % 4]])
        raise AssertionError("never a turn")

    answers = at_once(*[partial(wait_for_next, number) for number in range(4)])

    assert sum(isinstance(one, DependencyError) for one in answers) == 1
    assert Dependency.objects.count() == 3


def test_a_limited_queue_holds_its_limit_against_claims_at_once(clock: ManualClock) -> None:
    for _ in range(12):
        ask(clock, queue="narrow")
    public.limit_queue("narrow", 3, now=clock.now)
    wishes = [Wish(make_runner(f"runner-{number}").pk, 2, ["demo"]) for number in range(4)]

    answers: Sequence[list[Any]] = at_once(
        *[partial(claim.claim_limited, one, "narrow", now=clock.now) for one in wishes]
    )

    assert sum(len(taken) for taken in answers) == 3
