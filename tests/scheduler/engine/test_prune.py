"""What retention deletes, and what it keeps: X74."""

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command

from scheduler import public
from scheduler.engine import prune
from scheduler.models import AuditEntry, Dependency, Run, Runner, Task
from scheduler.public import Actor
from scheduler.registry import REGISTRY
from scheduler.rules.fire import NOTHING
from scheduler.rules.outcomes import Failed
from tests.clock import ManualClock
from tests.scheduler.engine.conftest import Ask
from tests.scheduler.make import Worker, make_runner

pytestmark = pytest.mark.django_db


def test_old_tasks_and_their_history_go(clock: ManualClock, worker: Worker, ask: Ask) -> None:
    ask()
    worker.end(worker.claim_one())
    recent = clock.advance(days=31)
    ask()
    worker.end(worker.claim_one())

    assert prune.prune(now=recent) == 2

    assert (Task.objects.count(), Run.objects.count()) == (1, 1)


def test_live_tasks_stay_whatever_their_age(clock: ManualClock, worker: Worker, ask: Ask) -> None:
    ask(after=10)
    ask(key="k", cron="0 0 1 1 *")

    prune.prune(now=clock.advance(days=4000))

    assert Task.objects.count() == 2


def test_a_task_that_somebody_waits_for_stays(clock: ManualClock, worker: Worker, ask: Ask) -> None:
    first = ask()
    worker.end(worker.claim_one())
    Dependency.objects.create(task_id=ask(after=60), dependency_id=first)

    prune.prune_tasks(clock.advance(days=31))

    assert Task.objects.filter(pk=first).exists()


def test_a_run_whose_hook_is_still_to_be_called_stays(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    ask()
    worker.end(worker.claim_one(), Failed("boom"))

    prune.prune(now=clock.advance(days=31))

    assert (Task.objects.count(), Run.objects.count()) == (1, 1)


def test_more_than_a_batch_goes_in_batches(
    clock: ManualClock, worker: Worker, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prune, "BATCH", 3)
    for _ in range(7):
        ask()
    worker.run_due()

    assert prune.prune_tasks(clock.advance(days=31)) == 7


@pytest.mark.parametrize(
    ("days", "gone"),
    [
        pytest.param(400, 1, id="21#17 400 d"),
        pytest.param(10, 0, id="21#17 10 d"),
        pytest.param(365, 0, id="21#18 an audit entry"),
        pytest.param(366, 1, id="a day more"),
    ],
)
def test_audit_entries_are_kept_for_a_year(
    clock: ManualClock, ask: Ask, days: int, gone: int
) -> None:
    public.cancel(ask(), actor=Actor("user", "ann"), now=clock.now)

    assert prune.prune_audit(clock.advance(days=days)) == gone
    assert AuditEntry.objects.count() == 1 - gone


def test_a_silent_runner_goes_unless_it_holds_something(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    other = make_runner("runner-b")
    ask()
    worker.claim()
    for runner in Runner.objects.all():
        old = runner.last_tick_at - timedelta(days=8)
        Runner.objects.filter(pk=runner.pk).update(last_tick_at=old)

    assert prune.prune_runners(clock.now) == 1
    assert not Runner.objects.filter(pk=other.pk).exists()


def test_applications_prune_their_own_rows(clock: ManualClock) -> None:
    @public.pruner("reports")
    def reports(now: object) -> int:
        return 7

    told = StringIO()
    call_command("prune", stdout=told)

    assert told.getvalue().splitlines()[-2:] == ["reports: 7", "7 rows deleted"]


def test_it_runs_each_night_by_itself(clock: ManualClock, worker: Worker, ask: Ask) -> None:
    prune.register()
    (declared,) = REGISTRY.declared.values()
    assert (declared.kind, declared.options["cron"]) == ("scheduler.prune", "20 4 * * *")

    ask()
    worker.end(worker.claim_one())
    public.request("scheduler.prune", now=clock.advance(days=31))
    held = worker.claim_one()

    assert prune.body(held.fire) == {"deleted": 2}
    assert prune.body(held.fire) is NOTHING
