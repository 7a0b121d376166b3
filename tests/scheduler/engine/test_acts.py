"""What people do to tasks and queues, each act with its audit entry."""

from datetime import UTC, datetime, timedelta

import pytest

from scheduler import public
from scheduler.models import AuditEntry, Queue, Task
from scheduler.public import Actor, NoSuchTaskError, TaskStateError
from scheduler.rules.fire import Retry
from scheduler.rules.outcomes import Failed
from scheduler.rules.states import Reason, TaskState
from tests.clock import ManualClock
from tests.scheduler.engine.conftest import Ask
from tests.scheduler.make import HookRecorder, Worker, due_of, outcomes_of, reload

pytestmark = pytest.mark.django_db
ANN = Actor("user", "ann", address="10.0.0.1")


def quarantine(task: int) -> None:
    Task.objects.filter(pk=task).update(
        state=TaskState.QUARANTINED.value,
        reason=Reason.CRASHED.value,
        suspect=True,
        crash_count=3,
        ready=False,
        due_at=None,
    )


def test_a_cancelled_task_never_runs(clock: ManualClock, worker: Worker, ask: Ask) -> None:
    task = ask()

    public.cancel(task, now=clock.now)

    row = reload(task)
    assert (row.state, row.reason) == (TaskState.CANCELLED.value, Reason.CANCELLED.value)
    assert row.ended_at == clock.now
    assert worker.claim() == []


@pytest.mark.parametrize("failed", [True, False])
def test_a_running_task_is_cancelled_when_its_body_ends(
    clock: ManualClock, worker: Worker, ask: Ask, *, failed: bool
) -> None:
    task = ask(key="k", cron="0 * * * *", run_on_startup=True, retry=Retry(9, 0, 0))
    held = worker.claim_one()

    public.cancel(task, now=clock.now)
    assert reload(task).state == TaskState.RUNNING.value
    worker.end_and_call_hooks(held, Failed("boom") if failed else None)

    assert reload(task).state == TaskState.CANCELLED.value
    assert worker.claim() == []


def test_a_request_after_the_cancellation_of_a_running_task_runs_it_again(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask(1, key="k")
    held = worker.claim_one()
    public.cancel(task, now=clock.now)
    ask(2, key="k")

    worker.end(held)

    assert worker.claim_one().input == 2


def test_what_is_over_cannot_be_cancelled(clock: ManualClock, worker: Worker, ask: Ask) -> None:
    task = ask()
    worker.end(worker.claim_one())
    before = Task.objects.values().get()

    with pytest.raises(TaskStateError, match="is finished"):
        public.cancel(task, actor=ANN, now=clock.now)

    assert Task.objects.values().get() == before
    assert AuditEntry.objects.count() == 0


def test_an_unknown_task_is_named(clock: ManualClock, worker: Worker) -> None:
    with pytest.raises(NoSuchTaskError, match="no task 77"):
        public.cancel(77, now=clock.now)


def test_run_now_pulls_a_task_forward(clock: ManualClock, worker: Worker, ask: Ask) -> None:
    task = ask(after=3600)

    public.run_now(task, now=clock.now)

    assert worker.claim_one().task_id == task


def test_run_now_of_a_recurring_task_keeps_its_occurrence(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask(key="k", cron="0 * * * *")

    public.run_now(task, now=clock.now)
    worker.end(worker.claim_one())

    assert due_of(task) == datetime(2026, 3, 2, 9, tzinfo=UTC)


def test_run_now_of_a_running_task_runs_it_once_more(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    ask(1)
    held = worker.claim_one()

    public.run_now(held.task_id, now=clock.now)
    worker.end(held)

    assert worker.claim_one().input == 1


def test_run_now_does_not_overtake_what_a_task_waits_for(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask(depends_on=[ask()])

    with pytest.raises(TaskStateError, match="waits for 1"):
        public.run_now(task, now=clock.now)

    assert reload(task).waits_for == 1


def test_a_failed_task_can_be_tried_again(clock: ManualClock, worker: Worker, ask: Ask) -> None:
    task = ask(1, retry=Retry(0, 1, 1))
    worker.end_and_call_hooks(worker.claim_one(), Failed("boom"))

    public.retry_task(task, actor=ANN, now=clock.now)

    row = reload(task)
    assert (row.state, row.retry_count, row.ended_at) == (TaskState.PENDING.value, 0, None)
    held = worker.claim_one()
    worker.end(held)
    assert len(outcomes_of(task)) == 2


def test_a_task_whose_key_is_taken_cannot_be_tried_again(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    old = ask(key="k")
    worker.end_and_call_hooks(worker.claim_one(), Failed("boom"))
    ask(key="k")

    with pytest.raises(TaskStateError, match="live already"):
        public.retry_task(old, now=clock.now)

    assert reload(old).state == TaskState.FAILED.value


def test_a_live_task_cannot_be_tried_again(clock: ManualClock, worker: Worker, ask: Ask) -> None:
    task = ask()

    with pytest.raises(TaskStateError, match="only what is over"):
        public.retry_task(task, now=clock.now)

    assert reload(task).generation == 1


def test_a_release_lets_a_quarantined_task_run_in_company_again(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask()
    quarantine(task)
    assert worker.claim() == []

    public.release(task, actor=ANN, reason="fixed the driver", now=clock.now)

    assert worker.claim_one().task_id == task
    assert reload(task).crash_count == 0
    assert AuditEntry.objects.get().reason == "fixed the driver"


def test_a_release_of_a_recurring_task_waits_for_its_next_occurrence(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask(key="k", cron="0 * * * *")
    quarantine(task)

    public.release(task, now=clock.now)

    assert due_of(task) == datetime(2026, 3, 2, 9, tzinfo=UTC)


def test_only_what_is_quarantined_is_released(clock: ManualClock, worker: Worker, ask: Ask) -> None:
    task = ask()

    with pytest.raises(TaskStateError, match="only what is quarantined"):
        public.release(task, now=clock.now)


def test_the_next_run_of_a_pending_task_can_be_moved(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask()
    later = clock.now + timedelta(hours=2)

    public.set_due(task, later, actor=ANN, now=clock.now)

    assert due_of(task) == later
    assert worker.claim() == []
    entry = AuditEntry.objects.get()
    assert entry.after is not None
    assert entry.after["due_at"] == later.isoformat()


def test_a_policy_can_be_replaced_and_taken_away(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask(retry=Retry(1, 2, 3))

    public.set_retry(task, Retry(4, 5, 6), now=clock.now)
    assert reload(task).retry == Retry(4, 5, 6)
    public.set_retry(task, None, now=clock.now)

    assert reload(task).retry is None


def test_a_cron_cannot_be_typed_for_a_task_that_does_not_recur(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask()

    with pytest.raises(TaskStateError, match="does not recur"):
        public.set_cron(task, "0 * * * *", now=clock.now)

    assert reload(task).cron_override is None


def test_a_bad_cron_is_refused_and_changes_nothing(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask(key="k", cron="0 * * * *")
    before = Task.objects.values().get()

    with pytest.raises(ValueError, match="31"):
        public.set_cron(task, "0 0 31 2 *", actor=ANN, now=clock.now)

    assert Task.objects.values().get() == before
    assert AuditEntry.objects.count() == 0


def test_pausing_is_an_act_with_an_entry(clock: ManualClock) -> None:
    public.pause_queue("slow", actor=ANN, reason="disk full", now=clock.now)

    assert Queue.objects.get().paused is True
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.object_id, entry.actor_kind) == ("pause", "slow", "user")
    assert entry.before == {"paused": False, "most_running": None}
    assert entry.after == {"paused": True, "most_running": None}


def test_a_failure_after_the_act_takes_act_and_entry_back(
    clock: ManualClock, worker: Worker, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = ask()

    def broken(*args: object, **options: object) -> None:
        raise RuntimeError("audit is full")

    monkeypatch.setattr("scheduler.engine.acts.record_act", broken)
    with pytest.raises(RuntimeError):
        public.cancel(task, actor=ANN, now=clock.now)

    assert reload(task).state == TaskState.PENDING.value


def test_a_late_retry_hook_does_not_bring_back_a_cancelled_task(
    clock: ManualClock, worker: Worker, ask: Ask, hooks: HookRecorder
) -> None:
    task = ask(retry=Retry(3, 0, 0))
    report = worker.fail(worker.claim_one())
    public.cancel(task, now=clock.now)

    worker.call_hooks(report)

    assert reload(task).state == TaskState.CANCELLED.value
    assert hooks.calls == [("attempt failed", 0)]
    assert worker.claim() == []
