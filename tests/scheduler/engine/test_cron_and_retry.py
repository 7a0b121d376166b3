"""Recurrence, retries and the clock: X18 to X33, and the misfire policies."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler import public
from scheduler.engine import startup
from scheduler.models import Run, Task
from scheduler.models.leasing import Choice, choose
from scheduler.rules.cron import CronError
from scheduler.rules.fire import Retry
from scheduler.rules.outcomes import Failed
from scheduler.rules.states import Outcome, Reason, TaskState
from scheduler.rules.zones import ZoneError
from tests.clock import ManualClock
from tests.scheduler.engine.conftest import Ask
from tests.scheduler.make import HookRecorder, Worker, due_of, outcomes_of, reload

pytestmark = pytest.mark.django_db
EVERY_5 = {"key": "k", "cron": "*/5 * * * *"}


def at(hour: int, minute: int = 0, *, day: int = 2) -> datetime:
    return datetime(2026, 3, day, hour, minute, tzinfo=UTC)


def test_a_backoff_that_crosses_an_occurrence_skips_it(  # X18
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask(retry=Retry(1, 420, 420), **EVERY_5)
    clock.set(at(8, 5))
    worker.end_and_call_hooks(worker.claim_one(), Failed("boom"))
    assert due_of(task) == at(8, 12)
    clock.set(at(8, 12))

    worker.end(worker.claim_one())

    assert due_of(task) == at(8, 15)


def test_each_occurrence_has_a_whole_retry_budget(  # X19
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask(retry=Retry(2, 1, 1), **EVERY_5)
    clock.set(at(8, 5))
    for _ in range(2):
        worker.end_and_call_hooks(worker.claim_one(), Failed("boom"))
        clock.advance(1)
    worker.end(worker.claim_one())
    assert reload(task).retry_count == 0

    clock.set(at(8, 10))
    worker.end_and_call_hooks(worker.claim_one(), Failed("boom"))

    assert due_of(task) == clock.now + timedelta(seconds=1)


def test_a_permanent_error_of_an_occurrence_waits_for_the_next(  # X20
    clock: ManualClock, worker: Worker, ask: Ask, hooks: HookRecorder
) -> None:
    task = ask(retry=Retry(2, 1, 1), **EVERY_5)
    for minute in (5, 10):
        clock.set(at(8, minute))
        worker.end_and_call_hooks(worker.claim_one(), Failed("boom", permanent=True))

    assert (reload(task).state, due_of(task)) == (TaskState.PENDING.value, at(8, 15))
    assert hooks.calls == [("failed", 0), ("failed", 0)]


def test_a_body_longer_than_its_period_skips_occurrences(  # X21
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask(**EVERY_5)
    clock.set(at(8, 5))
    held = worker.claim_one()
    clock.set(at(8, 17))
    assert worker.claim() == []

    worker.end(held)

    assert due_of(task) == at(8, 20)


@pytest.mark.parametrize(
    ("cron", "options", "error"),
    [
        ("0 0 31 2 *", {}, CronError),
        ("0 0 * * * *", {}, CronError),
        ("nonsense", {}, CronError),
        ("", {}, ValueError),
        ("0 9 * * *", {"tz": "Mars/Olympus"}, ZoneError),
        ("0 9 * * *", {"day_rule": "xor"}, ValueError),
    ],
)
def test_an_unusable_cron_is_refused_at_write(  # X22, X30
    worker: Worker, ask: Ask, cron: str, options: dict[str, str], error: type[Exception]
) -> None:
    with pytest.raises(error):
        ask(key="k", cron=cron, **options)

    assert Task.objects.count() == 0


@pytest.mark.parametrize("due_in", [-60, 3600])
def test_an_unusable_cron_in_the_database_is_set_aside_at_start(  # X23
    clock: ManualClock, worker: Worker, ask: Ask, due_in: int
) -> None:
    task, good = ask(**EVERY_5), ask(key="good", cron="*/5 * * * *")
    due = clock.now + timedelta(seconds=due_in)
    Task.objects.filter(pk=task).update(cron="61 * * * *", due_at=due, ready=due_in < 0)

    assert startup.set_aside_unusable(now=clock.now) == 1

    row = reload(task)
    assert (row.state, row.reason) == (TaskState.QUARANTINED.value, Reason.BAD_CRON.value)
    assert row.last_error
    assert worker.claim() == []
    assert reload(good).state == TaskState.PENDING.value


def test_an_unusable_cron_is_set_aside_when_it_is_due(  # X23
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask(**EVERY_5)
    Task.objects.update(tz="Mars/Olympus")
    clock.set(at(8, 5))

    assert worker.claim() == []

    assert reload(task).state == TaskState.QUARANTINED.value
    assert outcomes_of(task) == []


def test_a_cron_that_became_unusable_in_flight_is_set_aside_at_the_end(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask(**EVERY_5)
    clock.set(at(8, 5))
    held = worker.claim_one()
    Task.objects.update(cron="61 * * * *", generation=99)

    worker.end(held)

    assert reload(task).state == TaskState.QUARANTINED.value
    assert outcomes_of(task) == [Outcome.SUCCEEDED]


def test_a_good_cron_releases_what_was_set_aside_for_a_bad_one(  # decision 23
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask(**EVERY_5)
    Task.objects.update(cron="61 * * * *")
    startup.set_aside_unusable(now=clock.now)

    assert ask(**EVERY_5) == task

    assert (reload(task).state, due_of(task)) == (TaskState.PENDING.value, at(8, 5))


def test_a_clock_set_back_neither_runs_early_nor_repeats_an_occurrence(  # X24
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask(**EVERY_5)
    clock.set(at(8, 5))
    held = worker.claim_one()
    clock.jump(hours=-1)
    worker.end(held)

    assert due_of(task) == at(8, 10)
    assert worker.claim() == []


def test_a_ready_task_waits_when_the_clock_is_set_back(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    ask(at=at(8))
    clock.jump(hours=-1)
    assert worker.claim() == []

    clock.jump(hours=1)

    assert len(worker.claim()) == 1


def test_a_clock_set_forward_over_many_occurrences_makes_one_run(  # X25
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask(**EVERY_5)
    clock.jump(days=1)

    held = worker.claim_one()
    worker.end(held)

    assert held.occurrence_at == at(8, 0, day=3)
    assert due_of(task) == at(8, 5, day=3)
    assert Run.objects.get().missed == 287


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: {"retry": Retry(65_536, 1, 1)}, "retry times"),
        (lambda: {"retry": Retry(1, -1, 1)}, "retry min"),
        (lambda: {"retry": Retry(1, 1, 2**63)}, "retry max"),
        (lambda: {"priority": 101}, "priority"),
        (lambda: {"after": 1e20}, "delay"),
        (lambda: {"at": datetime(9999, 1, 1, tzinfo=UTC)}, "year 9990"),
    ],
)
def test_numbers_that_no_row_can_hold_are_refused(  # X28
    ask: Ask, make: Callable[[], dict[str, object]], named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        ask(**make())

    assert Task.objects.count() == 0


def test_no_retries_means_failed_at_once(  # X29
    worker: Worker, ask: Ask, hooks: HookRecorder
) -> None:
    task = ask(retry=Retry(0, 1, 1))

    worker.end_and_call_hooks(worker.claim_one(), Failed("boom"))

    assert (reload(task).state, reload(task).reason) == (
        TaskState.FAILED.value,
        Reason.EXHAUSTED.value,
    )
    assert hooks.calls == [("failed", 0)]


def test_a_least_delay_over_the_most_is_the_most(  # X29
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask(retry=Retry(1, 100, 7))

    worker.end_and_call_hooks(worker.claim_one(), Failed("boom"))

    assert due_of(task) == clock.now + timedelta(seconds=7)


@pytest.mark.parametrize(
    ("cron", "day_rule", "expected"),
    [
        ("0 9 13 * 5", "or", datetime(2026, 3, 6, 9, tzinfo=UTC)),
        ("0 9 13 * 5", "and", datetime(2026, 3, 13, 9, tzinfo=UTC)),
        ("0 9 * * 7", "or", datetime(2026, 3, 8, 9, tzinfo=UTC)),
        ("0 9 29 2 *", "or", datetime(2028, 2, 29, 9, tzinfo=UTC)),
    ],
)
def test_day_rules_sundays_and_leap_days(  # X30
    ask: Ask, cron: str, day_rule: str, expected: datetime
) -> None:
    assert due_of(ask(key="k", cron=cron, day_rule=day_rule)) == expected


def test_a_cron_text_changed_in_flight_decides_the_next_occurrence(  # X31
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask(**EVERY_5)
    clock.set(at(8, 5))
    held = worker.claim_one()
    ask(key="k", cron="0 12 * * *")

    worker.end(held)

    assert due_of(task) == at(12)


def test_a_permanent_error_on_the_second_run_tells_both_hooks(  # X32
    clock: ManualClock, worker: Worker, ask: Ask, hooks: HookRecorder
) -> None:
    ask(retry=Retry(5, 0, 0))
    worker.end_and_call_hooks(worker.claim_one(), Failed("boom"))
    worker.end_and_call_hooks(worker.claim_one(), Failed("boom", permanent=True))

    assert hooks.calls == [("attempt failed", 0), ("failed", 1)]


def test_two_retries_make_three_runs(  # X33
    clock: ManualClock, worker: Worker, ask: Ask, hooks: HookRecorder
) -> None:
    task = ask(retry=Retry(2, 0, 0))
    for _ in range(3):
        worker.end_and_call_hooks(worker.claim_one(), Failed("boom"))

    assert hooks.calls == [("attempt failed", 0), ("attempt failed", 1), ("failed", 2)]
    assert reload(task).state == TaskState.FAILED.value
    assert reload(task).reason == Reason.EXHAUSTED.value


# --- misfire: D16, X38 ---------------------------------------------------------------------------


def hourly(ask: Ask, misfire: str) -> int:
    return ask(key="h", cron="0 * * * *", misfire=misfire)


def test_skip_gives_up_what_was_missed_and_says_so(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = hourly(ask, "skip")
    clock.set(at(12, 45))

    assert worker.claim() == []

    row = reload(task)
    assert (row.due_at, row.attempt, row.state) == (at(13), 0, TaskState.PENDING.value)
    run = Run.objects.get()
    assert (run.outcome, run.missed) == (Outcome.MISSED.value, 4)


def test_skip_runs_an_occurrence_that_is_just_a_little_late(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    hourly(ask, "skip")
    clock.set(at(12, 10))

    assert worker.claim_one().occurrence_at == at(12)


def test_once_runs_the_last_missed_occurrence(clock: ManualClock, worker: Worker, ask: Ask) -> None:
    task = hourly(ask, "once")
    clock.set(at(12, 45))

    held = worker.claim_one()
    worker.end(held)

    assert (held.occurrence_at, due_of(task)) == (at(12), at(13))
    assert Run.objects.get().missed == 3


def test_all_runs_every_missed_occurrence_in_order(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = hourly(ask, "all")
    clock.set(at(12, 45))
    ran = []
    for _ in range(4):
        held = worker.claim_one()
        ran.append(held.occurrence_at)
        worker.end(held)

    assert ran == [at(9), at(10), at(11), at(12)]
    assert due_of(task) == at(13)


def test_all_gives_up_all_but_the_newest_hundred(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    ask(key="m", cron="* * * * *", misfire="all")
    clock.set(at(12))

    held = worker.claim_one()
    worker.end(held)

    assert held.occurrence_at == at(10, 21)
    assert Run.objects.get().missed == 140


def test_many_missed_occurrences_are_chosen_in_one_statement(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    for number in range(5):
        ask(key=str(number), cron="0 * * * *" if number % 2 else "30 * * * *")
    clock.set(at(12, 45))

    with CaptureQueriesContext(connection) as queries:
        held = worker.claim()

    assert [one.occurrence_at for one in held] == [at(12, 30)] * 3 + [at(12)] * 2
    written = Task.objects.order_by("occurrence_at").values_list("occurrence_at", "missed")
    assert list(written) == [(at(12), 3)] * 2 + [(at(12, 30), 4)] * 3
    assert sum("missed" in query["sql"] for query in queries) == 1


def test_an_occurrence_that_is_the_only_one_missed_needs_no_choice(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    hourly(ask, "once")
    clock.set(at(9, 50))

    with CaptureQueriesContext(connection) as queries:
        assert worker.claim_one().occurrence_at == at(9)
    assert not [query for query in queries if "missed" in query["sql"]]


def test_a_task_that_was_taken_over_meanwhile_is_left_as_it_is(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = hourly(ask, "once")
    clock.set(at(12, 45))
    worker.claim_one()
    token = reload(task).lease_token

    choose([Choice(task, token - 1, at(9), 0), Choice(task, token + 1, at(9), 0)])

    assert (reload(task).occurrence_at, reload(task).missed) == (at(12), 3)


def test_a_retry_is_never_late(clock: ManualClock, worker: Worker, ask: Ask) -> None:
    ask(key="h", cron="0 * * * *", misfire="skip", retry=Retry(1, 60, 60))
    clock.set(at(9))
    worker.end_and_call_hooks(worker.claim_one(), Failed("boom"))
    clock.set(at(15, 45))

    assert worker.claim_one().occurrence_at == at(9)


def test_a_one_shot_that_would_rather_not_be_late_is_skipped(
    clock: ManualClock, worker: Worker, ask: Ask
) -> None:
    task = ask(at=at(9), misfire="skip")
    dependent = ask(depends_on=[task])
    clock.set(at(9, 2))

    assert worker.claim() == []

    row = reload(task)
    assert (row.state, row.reason) == (TaskState.CANCELLED.value, Reason.MISSED.value)
    assert reload(dependent).ready is True


def test_a_one_shot_within_its_grace_runs(clock: ManualClock, worker: Worker, ask: Ask) -> None:
    ask(at=at(9), misfire="skip")
    clock.set(at(9) + timedelta(seconds=90))

    assert len(worker.claim()) == 1


def test_an_occurrence_in_a_zone_is_at_its_own_wall_clock(ask: Ask) -> None:
    task = ask(key="k", cron="30 9 * * *", tz="Europe/Budapest")

    assert due_of(task) == at(8, 30)
    assert reload(task).tz == "Europe/Budapest"
    public.set_cron(task, "0 10 * * *", now=at(8))
    assert due_of(task) == at(9)
