"""Every statement of an operation fails once: all or nothing, and the next try succeeds."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.db.models import Model

from scheduler import public
from scheduler.engine import claim, enqueue, reap
from scheduler.engine.finish import finish
from scheduler.models import Dependency, Queue, Run, Task
from scheduler.rules.claims import Claim, Ending
from scheduler.rules.fire import Retry
from scheduler.rules.leases import Lease
from scheduler.rules.orders import make_order
from scheduler.rules.outcomes import Ended, Failed, Succeeded
from tests.clock import ManualClock
from tests.scheduler.engine.conftest import Ask
from tests.scheduler.make import Worker

pytestmark = pytest.mark.django_db
MOST_STATEMENTS = 60


class Fault:
    """Fails the n-th statement, before or after it took effect."""

    def __init__(self, number: int, *, after: bool) -> None:
        """Count from 1."""
        self.number, self.after, self.count = number, after, 0

    def __call__(
        self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        """Pass a statement on, or fail."""
        # Where a test's transaction has a savepoint, the real one has BEGIN and COMMIT.
        if sql.startswith(("SAVEPOINT", "RELEASE", "ROLLBACK")):
            return execute(sql, params, many, context)
        self.count += 1
        if self.count == self.number and not self.after:
            raise OperationalError("injected before")
        answer = execute(sql, params, many, context)
        if self.count == self.number:
            raise OperationalError("injected after")
        return answer

    @property
    def hit(self) -> bool:
        """Whether there was an n-th statement."""
        return self.count >= self.number


WRITTEN: tuple[type[Model], ...] = (Task, Dependency, Run, Queue)


def everything() -> list[list[dict[str, Any]]]:
    """All rows that the operations write."""
    return [list(model._default_manager.order_by("pk").values()) for model in WRITTEN]


def survives_every_fault(operate: Callable[[], object], *, after: bool) -> int:
    """Fail statement 1, 2, …; nothing may have changed. Return how many there were."""
    before = everything()
    for number in range(1, MOST_STATEMENTS):
        fault = Fault(number, after=after)
        # The operation's own transaction has to undo it: the test's goes on.
        with connection.execute_wrapper(fault), suppress(OperationalError):
            operate()
        if not fault.hit:
            return number - 1
        assert everything() == before, f"statement {number}"
    raise AssertionError("it never came to an end")


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    "ended",
    [Succeeded({"a": 1}), Failed("boom"), Failed("boom", permanent=True)],
    ids=["success", "retry", "failure"],
)
def test_a_finish_is_all_or_nothing(  # X75
    clock: ManualClock, worker: Worker, ask: Ask, ended: Ended, *, after: bool
) -> None:
    first = ask(key="k", retry=Retry(1, 5, 5))
    ask(depends_on=[first])
    ask(depends_on=[first], require_success=True)
    held = worker.claim_one()

    statements = survives_every_fault(lambda: worker.end(held, ended), after=after)

    assert statements >= 3
    assert Run.objects.filter(task_id=first).count() == 1


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_finish_of_many_is_all_or_nothing(
    clock: ManualClock, worker: Worker, ask: Ask, *, after: bool
) -> None:
    once, daily = ask(), ask(key="k", cron="*/5 * * * *", run_on_startup=True)
    changed = ask(key="c")
    held = worker.claim()
    ask(2, key="c")
    ask(depends_on=[once, daily, changed])
    ended = [Ending(one, Succeeded(), clock.now) for one in held]

    survives_every_fault(lambda: finish(ended, runner_name="r", now=clock.now), after=after)

    assert Run.objects.count() == 3


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("there", ["new", "pending", "running"])
def test_a_request_is_all_or_nothing(
    clock: ManualClock, worker: Worker, ask: Ask, there: str, *, after: bool
) -> None:
    other = ask("other", after=60)
    if there != "new":
        ask(key="k", depends_on=[other] if there == "pending" else [])
    if there == "running":
        worker.claim_one()
    another = ask("another", after=60)
    order = make_order(
        "demo", key="k", cron="0 * * * *", depends_on=[other, another], now=clock.now
    )

    statements = survives_every_fault(lambda: enqueue.enqueue(order, now=clock.now), after=after)

    assert statements >= 3
    assert Dependency.objects.filter(task__key="k").count() == 2


def test_a_claim_takes_all_of_its_tasks_or_none(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    tasks = [ask(number) for number in range(3)]
    taken: list[Claim] = []

    def take() -> None:
        taken[:] = claim.claim(worker.wish(), now=clock.now)

    # It is one statement: what it did although its answer was lost is given back, see test_loop.
    survives_every_fault(take, after=False)

    assert [one.task_id for one in taken] == tasks


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_claim_from_a_limited_queue_is_all_or_nothing(
    clock: ManualClock, worker: Worker, ask: Ask, *, after: bool
) -> None:
    ask(queue="narrow")
    public.limit_queue("narrow", 1, now=clock.now)

    survives_every_fault(
        lambda: claim.claim_limited(worker.wish(), "narrow", now=clock.now), after=after
    )

    assert Queue.objects.get().claims == 1


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_lease_is_freed_with_its_history_or_not_at_all(
    clock: ManualClock, worker: Worker, ask: Ask, *, after: bool
) -> None:
    held = worker.claim_one() if ask() else None
    assert held is not None
    lease = Lease(held.task_id, held.token, 1, worker.runner.pk)

    survives_every_fault(lambda: reap.free([lease], now=clock.now), after=after)

    assert Run.objects.count() == 1


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_cancellation_is_all_or_nothing(
    clock: ManualClock, worker: Worker, ask: Ask, *, after: bool
) -> None:
    first = ask(after=60)
    ask(depends_on=[first], require_success=True)

    survives_every_fault(lambda: public.cancel(first, now=clock.now), after=after)

    assert Task.objects.live().count() == 0
