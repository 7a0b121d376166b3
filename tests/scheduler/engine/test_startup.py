"""What a start of the runner does to recurring tasks: X34 to X41, and staff's cron."""

from datetime import UTC, datetime

import pytest

from scheduler import public
from scheduler.engine import startup
from scheduler.models import AuditEntry, Task
from scheduler.public import Actor
from scheduler.registry import REGISTRY
from scheduler.rules.fire import Retry
from scheduler.rules.orders import OrderError
from scheduler.rules.outcomes import Failed
from scheduler.rules.states import TaskState
from tests.clock import ManualClock
from tests.scheduler.engine.conftest import Ask
from tests.scheduler.make import Worker, due_of, outcomes_of, reload

pytestmark = pytest.mark.django_db
HOURLY = "0 * * * *"


def at(hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 3, 2, hour, minute, tzinfo=UTC)


def register(ask: Ask) -> int:
    return ask(key="k", cron=HOURLY, run_on_startup=True, retry=Retry(3, 1200, 1200))


def test_a_new_key_runs_at_once_and_then_by_its_cron(  # X34
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = register(ask)

    held = worker.claim_one()
    worker.end(held)

    assert held.fire.occurrence_at is None
    assert due_of(task) == at(9)


def test_a_coming_occurrence_is_waited_for(  # X35
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask(key="k", cron=HOURLY)
    clock.set(at(8, 20))

    assert register(ask) == task

    assert due_of(task) == at(9)
    assert worker.claim() == []


@pytest.mark.parametrize("now", [at(9), at(9, 40)], ids=["exactly now", "past"])
def test_a_missed_occurrence_runs_at_once(  # X36
    clock: ManualClock, worker: Worker, ask: Ask, now: datetime
) -> None:
    ask(key="k", cron=HOURLY, misfire="skip")
    clock.set(now)

    ask(key="k", cron=HOURLY, misfire="skip", run_on_startup=True)

    assert worker.claim_one().occurrence_at == at(9)


def test_a_pending_retry_is_kept(clock: ManualClock, worker: Worker, ask: Ask) -> None:  # X37
    task = register(ask)
    worker.end_and_call_hooks(worker.claim_one(), Failed("boom"))
    clock.set(at(8, 5))

    register(ask)

    row = reload(task)
    assert (row.due_at, row.retry_count) == (at(8, 20), 1)


@pytest.mark.parametrize("register_first", [True, False])
def test_the_order_of_registration_and_first_look_does_not_matter(  # X38
    clock: ManualClock, worker: Worker, ask: Ask, *, register_first: bool
) -> None:
    task = ask(key="k", cron=HOURLY)
    clock.set(at(10, 40))

    if register_first:
        ask(key="k", cron=HOURLY)
        held = worker.claim_one()
    else:
        held = worker.claim_one()
        ask(key="k", cron=HOURLY)
    worker.end(held)

    assert held.occurrence_at == at(10)
    assert due_of(task) == at(11)
    assert len(outcomes_of(task)) == 1


def test_start_up_without_a_cron_is_an_error(worker: Worker, ask: Ask) -> None:  # X39
    with pytest.raises(OrderError, match="recurring"):
        ask(run_on_startup=True)

    assert Task.objects.count() == 0


def test_a_recurring_task_needs_a_key(worker: Worker, ask: Ask) -> None:  # X40
    with pytest.raises(OrderError, match="needs a key"):
        ask(cron=HOURLY)

    assert Task.objects.count() == 0


def test_a_registration_while_it_runs_makes_no_extra_run(  # X41
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = register(ask)
    held = worker.claim_one()
    register(ask)

    worker.end(held)

    assert due_of(task) == at(9)
    assert worker.claim() == []


def test_declared_tasks_are_registered_at_each_start(clock: ManualClock, worker: Worker) -> None:
    public.recurring("demo", key="nightly", cron="0 4 * * *", tz="Europe/Budapest", priority=3)

    assert startup.register_declared(now=clock.now) == 1
    assert startup.register_declared(now=clock.now) == 1

    row = Task.objects.get()
    assert (row.cron, row.tz, row.priority) == ("0 4 * * *", "Europe/Budapest", 3)
    assert row.due_at == datetime(2026, 3, 3, 3, 0, tzinfo=UTC)


def test_one_bad_declaration_does_not_stop_the_others(clock: ManualClock, worker: Worker) -> None:
    public.recurring("unknown", key="a", cron="0 4 * * *")
    public.recurring("demo", key="b", cron="0 4 * * *")

    assert startup.register_declared(now=clock.now) == 1

    assert Task.objects.get().key == "b"


def test_the_cron_that_staff_typed_survives_every_start(  # 22b
    clock: ManualClock, worker: Worker
) -> None:
    public.recurring("demo", key="nightly", cron="0 4 * * *")
    startup.register_declared(now=clock.now)
    task = Task.objects.get().pk

    public.set_cron(task, "0 12 * * *", now=clock.now)
    startup.register_declared(now=clock.now)

    row = reload(task)
    assert (row.cron, row.cron_override, row.due_at) == ("0 4 * * *", "0 12 * * *", at(12))


def test_a_reset_brings_back_the_cron_of_the_code(clock: ManualClock, worker: Worker) -> None:
    public.recurring("demo", key="nightly", cron="0 14 * * *")
    startup.register_declared(now=clock.now)
    task = Task.objects.get().pk
    public.set_cron(task, "0 12 * * *", now=clock.now)
    staff = Actor("user", "ann", address="10.0.0.1")

    public.set_cron(task, None, actor=staff, reason="as it was", now=clock.now)

    row = reload(task)
    assert (row.cron_override, row.due_at) == (None, at(14))
    entry = AuditEntry.objects.get()
    assert (entry.actor_name, entry.action, entry.reason) == ("ann", "reset cron", "as it was")
    assert entry.before is not None
    assert entry.after is not None
    assert (entry.before["cron_override"], entry.after["cron_override"]) == ("0 12 * * *", None)


def test_typing_the_same_cron_again_moves_nothing(clock: ManualClock, ask: Ask) -> None:
    task = ask(key="k", cron=HOURLY)
    clock.set(at(9, 5))

    public.set_cron(task, HOURLY, now=clock.now)

    assert due_of(task) == at(9)


def test_a_kind_that_is_gone_is_not_registered(clock: ManualClock, worker: Worker) -> None:
    public.recurring("demo", key="nightly", cron="0 4 * * *")
    REGISTRY.kinds.clear()

    assert startup.register_declared(now=clock.now) == 0
    assert not Task.objects.filter(state=TaskState.PENDING.value).exists()
