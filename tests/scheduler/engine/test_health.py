"""The queue-health report: each trouble is seen, named, and nothing else is."""

import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.engine import inspection
from scheduler.models import Dependency, Runner, Task
from scheduler.public import pause_queue, queue_health, request
from scheduler.registry import REGISTRY
from scheduler.rules.health import QueueHealth, TaskName, Verdict
from scheduler.rules.states import TaskState
from tests.clock import ManualClock
from tests.scheduler.make import Worker, make_kind, make_runner, only_kinds

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def demo() -> None:
    REGISTRY.add(make_kind("demo"))


def silence(runner: Runner, seconds: float) -> None:
    """Let a runner have ticked last that long ago, on the database's clock."""
    at = Runner.objects.get(pk=runner.pk).last_tick_at - timedelta(seconds=seconds)
    Runner.objects.filter(pk=runner.pk).update(last_tick_at=at, started_at=at)


def stop_beating(task_id: int, seconds: float) -> None:
    """Let the lease of a task have been kept last that long ago."""
    beat_at = Task.objects.get(pk=task_id).beat_at
    assert beat_at is not None
    Task.objects.filter(pk=task_id).update(beat_at=beat_at - timedelta(seconds=seconds))


def waiting_pair(clock: ManualClock) -> tuple[int, int]:
    """A task, and one that waits for it."""
    first = request("demo", key="first", now=clock.now)
    second = request("demo", key="second", depends_on=[first], now=clock.now)
    return first, second


def counts_of(health: QueueHealth) -> tuple[int, int, int, int]:
    return health.waiting, health.scheduled, health.running, health.dependents


def test_an_empty_queue_with_a_runner_is_well(clock: ManualClock) -> None:
    make_runner()
    health = queue_health(clock.now)
    assert (health.verdict, list(health.reasons)) == (Verdict.OK, [])
    assert counts_of(health) == (0, 0, 0, 0)


def test_without_a_runner_the_queue_is_down(clock: ManualClock) -> None:
    health = queue_health(clock.now)
    assert (health.verdict, list(health.reasons)) == (Verdict.DOWN, ["no runner takes tasks"])


def test_the_counts_of_the_original_are_there(clock: ManualClock) -> None:
    worker = Worker(clock)
    request("demo", key="running", now=clock.now)
    worker.claim_one()
    waiting_pair(clock)
    request("demo", key="later", after=3600, now=clock.now)
    health = queue_health(clock.now)
    assert counts_of(health) == (1, 2, 1, 1)
    assert (health.due, health.verdict) == (1, Verdict.OK)


def test_counts_are_told_by_state_and_by_kind(clock: ManualClock) -> None:
    make_runner()
    waiting_pair(clock)
    request("demo", after=3600, now=clock.now)
    health = queue_health(clock.now)
    assert health.by_kind == {"demo": {"waiting": 1, "due": 1, "later": 1}}
    assert health.by_state == {
        "waiting": 1,
        "due": 1,
        "later": 1,
        "running": 0,
        "quarantined": 0,
    }


def test_a_dependency_that_is_about_to_end_is_no_false_alarm(clock: ManualClock) -> None:
    worker = Worker(clock)
    waiting_pair(clock)
    worker.claim_one()
    health = queue_health(clock.now)
    assert (health.tasks_with_missing_deps, health.stuck_tasks) == ([], [])
    assert health.verdict is Verdict.OK


def test_a_task_that_waits_for_nothing_is_stuck(clock: ManualClock) -> None:  # X71
    make_runner()
    _, second = waiting_pair(clock)
    Dependency.objects.all().delete()
    health = queue_health(clock.now)
    assert health.stuck_tasks == [TaskName(second, "demo", "second")]
    assert list(health.reasons) == ["tasks that wait for nothing: 1"]


def test_a_task_that_lost_one_of_its_edges_is_stuck_too(clock: ManualClock) -> None:
    make_runner()
    _, second = waiting_pair(clock)
    Task.objects.filter(pk=second).update(waits_for=2)
    assert queue_health(clock.now).stuck_tasks == [TaskName(second, "demo", "second")]


def test_an_edge_to_a_task_that_is_over_is_missing(clock: ManualClock) -> None:  # X71
    make_runner()
    first, second = waiting_pair(clock)
    Task.objects.filter(pk=first).update(
        state=TaskState.CANCELLED, due_at=None, ready=False, ended_at=clock.now
    )
    (wait,) = queue_health(clock.now).tasks_with_missing_deps
    assert (wait.task.id, wait.dependency.id, wait.dependency_state) == (
        second,
        first,
        "cancelled",
    )


def test_who_waits_for_what_is_listed(clock: ManualClock) -> None:
    make_runner()
    first, second = waiting_pair(clock)
    (wait,) = queue_health(clock.now).waits
    assert (wait.task.id, wait.dependency.id) == (second, first)


def test_a_circle_is_found(clock: ManualClock) -> None:
    make_runner()
    first, second = waiting_pair(clock)
    Dependency.objects.create(task_id=first, dependency_id=second)
    Task.objects.filter(pk=first).update(waits_for=1, due_at=None, ready=False)
    health = queue_health(clock.now)
    assert [sorted(circle) for circle in health.cycles] == [[first, second]]
    assert list(health.reasons) == ["circles of tasks that wait for each other: 1"]


def test_a_lease_that_nobody_keeps_is_expired_after_a_minute(  # X72
    clock: ManualClock,
) -> None:
    worker = Worker(clock)
    task_id = request("demo", now=clock.now)
    worker.claim_one()
    stop_beating(task_id, 55)
    assert queue_health(clock.now).expired_leases == []
    stop_beating(task_id, 10)
    (held,) = queue_health(clock.now).expired_leases
    assert (held.task.id, held.runner) == (task_id, "runner-a")


def test_a_body_that_has_run_for_over_an_hour_is_reported(clock: ManualClock) -> None:
    worker = Worker(clock)
    task_id = request("demo", now=clock.now)
    worker.claim_one()
    assert queue_health(clock.advance(hours=1)).hung == []
    (held,) = queue_health(clock.advance(seconds=1)).hung
    assert (held.task.id, held.running_s) == (task_id, 3601.0)


def test_a_quarantined_task_is_shown_with_its_reason(clock: ManualClock) -> None:
    make_runner()
    task_id = request("demo", now=clock.now)
    Task.objects.filter(pk=task_id).update(
        state=TaskState.QUARANTINED, ready=False, reason="its process died too often"
    )
    health = queue_health(clock.now)
    (shown,) = health.quarantined_tasks
    assert (shown.task.id, shown.reason) == (task_id, "its process died too often")
    assert (health.quarantined, list(health.reasons)) == (1, ["quarantined tasks: 1"])


def test_the_age_of_the_oldest_due_task_is_told(clock: ManualClock) -> None:
    make_runner()
    request("demo", now=clock.now, priority=-5)
    clock.advance(seconds=30)
    request("demo", now=clock.now, priority=5)
    clock.advance(seconds=31)
    health = queue_health(clock.now)
    assert health.oldest_due_age_s == 61.0
    assert list(health.reasons) == ["the oldest due task has waited for 61 s"]


def test_a_task_that_became_due_and_was_not_moved_up_counts_as_due(clock: ManualClock) -> None:
    make_runner()
    request("demo", after=10, now=clock.now)
    clock.advance(seconds=15)
    health = queue_health(clock.now)
    assert (health.due, health.scheduled, health.oldest_due_age_s) == (1, 1, 5.0)


def test_what_a_paused_queue_holds_back_is_not_late(clock: ManualClock) -> None:
    make_runner()
    request("demo", queue="slow", now=clock.now)
    pause_queue("slow", now=clock.now)
    health = queue_health(clock.now + 5 * MINUTE)
    assert (health.paused_queues, health.oldest_due_age_s) == (["slow"], None)
    assert health.verdict is Verdict.OK


def test_a_kind_without_a_handler_is_named_and_is_not_late(clock: ManualClock) -> None:
    make_runner()
    request("demo", now=clock.now)
    with only_kinds():
        health = queue_health(clock.now + 5 * MINUTE)
    assert health.unknown_kinds == ["demo"]
    assert list(health.reasons) == ["no handler for demo"]
    assert health.oldest_due_age_s is None


def test_a_silent_runner_degrades_and_is_named(clock: ManualClock) -> None:
    make_runner("alive")
    silence(make_runner("gone"), 90)
    health = queue_health(clock.now)
    assert [runner.is_alive for runner in health.runners] == [True, False]
    assert health.verdict is Verdict.DEGRADED
    assert health.reasons[0].startswith("runner gone has been silent for 9")


def test_a_silent_runner_is_forgotten_when_its_successor_has_come(clock: ManualClock) -> None:
    silence(make_runner("one"), 90)
    make_runner("one")
    assert queue_health(clock.now).verdict is Verdict.OK


def test_a_runner_that_signed_off_is_not_missed(clock: ManualClock) -> None:
    make_runner("alive")
    silence(make_runner("gone", stopped_at=clock.now), 90)
    assert queue_health(clock.now).verdict is Verdict.OK


def test_failed_runs_of_a_day_are_counted(clock: ManualClock) -> None:
    worker = Worker(clock)
    request("demo", now=clock.now)
    worker.fail(worker.claim_one())
    assert queue_health(clock.now).failed_runs_24h == 1
    assert queue_health(clock.advance(hours=25)).failed_runs_24h == 0


def test_counting_ends_early_and_says_so(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspection, "MOST_COUNTED", 3)
    make_runner()
    for _ in range(5):
        request("demo", now=clock.now)
    health = queue_health(clock.now)
    assert (health.due, health.capped) == (3, ["due"])


def test_the_number_of_queries_is_the_same_for_any_queue(clock: ManualClock) -> None:
    worker = Worker(clock)
    with CaptureQueriesContext(
        connection,
    ) as few:
        queue_health(clock.now)
    for number in range(30):
        first = request("demo", key=f"first {number}", now=clock.now)
        request("demo", depends_on=[first], now=clock.now)
    worker.claim(10)
    with CaptureQueriesContext(connection) as many:
        queue_health(clock.now)
    assert len(many) == len(few) == 10


@pytest.mark.django_db(transaction=True)
def test_what_is_read_is_of_one_moment(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    make_runner()
    _, second = waiting_pair(clock)
    monkeypatch.setattr(inspection, "runners", lambda: _settle_elsewhere(second, clock))
    health = queue_health(clock.now)
    assert (health.stuck_tasks, len(health.waits), health.waiting) == ([], 1, 1)
    assert Dependency.objects.count() == 0


def _settle_elsewhere(task_id: int, clock: ManualClock) -> list[object]:
    """Lose the edge of a task on another connection, in the midst of the look."""

    def lose() -> None:
        Dependency.objects.filter(task_id=task_id).delete()
        connection.close()

    thread = threading.Thread(target=lose)
    thread.start()
    thread.join()
    return []
