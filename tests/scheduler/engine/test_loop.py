"""The runner's loop, one pass at a time: bodies run in real threads, time stands still."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import Mock, patch

import pytest
from django.db import DataError, OperationalError

from scheduler import public
from scheduler.engine import hand, runners, wakeup
from scheduler.engine.finish import Finished, finish
from scheduler.engine.loop import Clocks, Loop
from scheduler.models import Run, Runner, Task
from scheduler.registry import REGISTRY, Kind
from scheduler.rules.claims import Ending
from scheduler.rules.fire import Fire
from scheduler.rules.outcomes import Succeeded
from scheduler.rules.states import TaskState
from tests.clock import ManualClock
from tests.scheduler.make import (
    HookRecorder,
    Recorder,
    make_runner,
    outcomes_of,
    reload,
    with_hooks,
)

pytestmark = pytest.mark.django_db
# Only ever reached by a test that fails.
PATIENCE = 10


@dataclass
class Gate:
    """A body that stays inside until it is let go."""

    entered: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    leave: threading.Event = field(default_factory=threading.Event)
    inputs: list[object] = field(default_factory=list)

    def __call__(self, fire: Fire) -> object:
        """Say that it is inside, and wait."""
        self.inputs.append(fire.input)
        self.entered.release()
        assert self.leave.wait(PATIENCE)
        return None

    def wait_inside(self, count: int = 1) -> None:
        """Return when `count` more bodies are inside."""
        for _ in range(count):
            assert self.entered.acquire(timeout=PATIENCE)


@pytest.fixture
def gate() -> Iterator[Gate]:
    """The body of `slow`, let go at the latest when the test ends."""
    made = Gate()
    REGISTRY.add(Kind("slow", made))
    REGISTRY.add(Kind("quick", lambda fire: None))
    yield made
    made.leave.set()


@pytest.fixture
def runner() -> Runner:
    return make_runner()


@pytest.fixture
def loop(clock: ManualClock, gate: Gate, runner: Runner) -> Iterator[Loop]:
    """A runner with two threads."""
    made = Loop(runner, Clocks(clock, clock.monotonic), workers=2)
    yield made
    gate.leave.set()
    made.hand.executor.stop()
    made.hand.executor.join(PATIENCE)


def ask(clock: ManualClock, kind: str = "slow", number: object = None, **options: Any) -> int:
    return public.request(kind, input=number, now=clock.now, **options)


def let_end(loop: Loop, count: int = 1) -> None:
    """Make passes until `count` bodies were written as ended."""
    wanted = Run.objects.count() + count
    while Run.objects.count() < wanted:
        wakeup.DUE.clear()
        loop.step()
        if Run.objects.count() < wanted:
            assert wakeup.DUE.wait(PATIENCE)


def fail(fire: Fire) -> object:
    raise OSError(fire.kind)


def held(loop: Loop) -> list[int]:
    return sorted(loop.hand.claims)


def test_a_pass_takes_what_is_due_and_a_later_one_writes_its_end(
    clock: ManualClock, loop: Loop, gate: Gate
) -> None:
    task = ask(clock)

    loop.step()
    gate.wait_inside()
    assert held(loop) == [task]
    gate.leave.set()
    let_end(loop)

    assert reload(task).state == TaskState.FINISHED.value
    assert loop.hand.is_empty


def test_no_more_is_taken_than_threads_can_begin(
    clock: ManualClock, loop: Loop, gate: Gate
) -> None:
    tasks = [ask(clock) for _ in range(5)]

    loop.step()
    loop.step()

    assert held(loop) == tasks[:2]


def test_short_bodies_are_taken_ahead(clock: ManualClock, loop: Loop) -> None:
    loop.hand.executor.pace.note(0.0)
    for _ in range(150):
        ask(clock, "quick")

    loop.intake.fill(at=clock.monotonic(), now=clock.now)

    assert len(loop.hand.claims) == 100


def test_what_was_taken_ahead_of_long_bodies_is_given_back(
    clock: ManualClock, loop: Loop, gate: Gate
) -> None:
    loop.hand.executor.pace.note(0.0)
    tasks = [ask(clock) for _ in range(5)]
    loop.step()
    gate.wait_inside(2)
    assert len(held(loop)) == 5
    clock.advance(1)

    loop.step()

    assert held(loop) == tasks[:2]
    assert [reload(task).attempt for task in tasks[2:]] == [0, 0, 0]
    assert gate.inputs == [None, None]


def test_it_waits_until_the_next_task_is_due(clock: ManualClock, loop: Loop) -> None:
    ask(clock, after=1.5)

    assert loop.step() == 1.5


def test_it_looks_again_for_lost_leases_within_two_seconds(clock: ManualClock, loop: Loop) -> None:
    ask(clock, after=3600)

    assert loop.step() == 2.0


def test_a_clock_set_forward_while_idle_is_late_by_one_look_at_most(  # X26
    clock: ManualClock, loop: Loop, gate: Gate
) -> None:
    task = ask(clock, after=3600)
    assert loop.step() == 2.0

    clock.advance(7200)
    loop.step()
    loop.step()

    assert held(loop) == [task]


def test_a_task_that_becomes_due_is_taken_in_the_pass_after(
    clock: ManualClock, loop: Loop, gate: Gate
) -> None:
    task = ask(clock, after=1)
    loop.step()
    clock.advance(1)

    assert loop.step() == 0.0
    loop.step()

    assert held(loop) == [task]


def test_a_kind_runs_no_more_bodies_than_its_limit(
    clock: ManualClock, loop: Loop, gate: Gate
) -> None:
    REGISTRY.add(Kind("slow", gate, limit=1))
    first, _, other = ask(clock), ask(clock), ask(clock, "quick")

    loop.step()
    let_end(loop)
    loop.step()

    assert held(loop) == [first]
    assert reload(other).state == TaskState.FINISHED.value


def test_a_limited_queue_is_served_within_its_limit(
    clock: ManualClock, loop: Loop, gate: Gate
) -> None:
    public.limit_queue("narrow", 1, now=clock.now)
    first = ask(clock, queue="narrow")
    ask(clock, queue="narrow")

    loop.step()
    loop.step()

    assert held(loop) == [first]


def test_a_suspect_runs_alone(clock: ManualClock, loop: Loop, gate: Gate) -> None:
    suspect, other = ask(clock, number="suspect"), ask(clock, number="other")
    Task.objects.filter(pk=suspect).update(suspect=True)

    loop.step()
    gate.wait_inside()
    loop.step()
    assert held(loop) == [suspect]

    gate.leave.set()
    let_end(loop)
    let_end(loop)
    assert reload(other).state == TaskState.FINISHED.value


def test_a_busy_runner_takes_nothing_else_while_a_suspect_waits(
    clock: ManualClock, loop: Loop, gate: Gate
) -> None:
    busy = ask(clock)
    loop.step()
    suspect, other = ask(clock), ask(clock)
    Task.objects.filter(pk=suspect).update(suspect=True)
    clock.advance(2)

    loop.step()
    assert held(loop) == [busy]
    gate.leave.set()
    let_end(loop)

    assert held(loop) in ([suspect], [])
    assert reload(other).attempt == 0


def test_a_long_body_does_not_hold_everybody_up_for_a_suspect(
    clock: ManualClock, loop: Loop, gate: Gate
) -> None:
    busy = ask(clock)
    loop.step()
    suspect, other = ask(clock), ask(clock)
    Task.objects.filter(pk=suspect).update(suspect=True)
    clock.advance(2)
    loop.step()
    for _ in range(3):
        clock.advance(10)
        loop.step()

    assert held(loop) == sorted([busy, other])
    assert reload(suspect).state == TaskState.PENDING.value


def test_leases_are_kept_by_one_beat_for_all(clock: ManualClock, loop: Loop, gate: Gate) -> None:
    tasks = [ask(clock), ask(clock)]
    loop.step()
    before = [reload(task).beat for task in tasks]
    clock.advance(10)

    loop.step()

    assert [reload(task).beat for task in tasks] == [beat + 1 for beat in before]


def test_a_process_that_stood_still_begins_nothing_it_had_taken(
    clock: ManualClock, loop: Loop, gate: Gate
) -> None:
    loop.hand.executor.pace.note(0.0)
    tasks = [ask(clock) for _ in range(4)]
    loop.step()
    gate.wait_inside(2)
    clock.advance(26)

    loop.step()

    # Taken anew, under leases that are its own for certain.
    assert [reload(task).lease_token for task in tasks] == [1, 1, 2, 2]
    assert gate.inputs == [None, None]


def test_a_stopping_runner_takes_nothing_and_lets_bodies_end(
    clock: ManualClock, loop: Loop, gate: Gate
) -> None:
    task = ask(clock)
    loop.step()
    gate.wait_inside()
    loop.stop()
    late = ask(clock)
    gate.leave.set()

    loop.run()

    assert reload(task).state == TaskState.FINISHED.value
    assert reload(late).state == TaskState.PENDING.value
    assert loop.runner.pk in Runner.objects.filter(stopped_at__isnull=False).values_list(
        "pk", flat=True
    )


def test_a_body_that_does_not_end_in_time_is_given_back_without_a_count(
    clock: ManualClock, loop: Loop, gate: Gate
) -> None:
    task = ask(clock)
    loop.step()
    gate.wait_inside()
    loop.stop()
    clock.advance(25)

    loop.run()

    row = reload(task)
    assert (row.state, row.attempt, row.suspect) == (TaskState.PENDING.value, 0, False)


def test_a_second_stop_ends_at_once(clock: ManualClock, loop: Loop, gate: Gate) -> None:
    task = ask(clock)
    loop.step()
    gate.wait_inside()

    loop.stop()
    loop.stop()
    loop.run()

    assert reload(task).state == TaskState.PENDING.value


def test_until_idle_ends_when_nothing_is_due(clock: ManualClock, loop: Loop, gate: Gate) -> None:
    gate.leave.set()
    first = ask(clock)
    last = ask(clock, depends_on=[first])
    later = ask(clock, after=60)

    loop.run(until_idle=True)

    assert reload(last).state == TaskState.FINISHED.value
    assert reload(later).state == TaskState.PENDING.value


def test_once_leaves_what_became_due_later(clock: ManualClock, gate: Gate, runner: Runner) -> None:
    gate.leave.set()
    tasks = [ask(clock) for _ in range(3)]
    once = Loop(runner, Clocks(clock, clock.monotonic), cutoff=clock.now)
    clock.advance(1)
    late = ask(clock)

    once.run(until_idle=True)

    assert [reload(task).state for task in tasks] == [TaskState.FINISHED.value] * 3
    assert reload(late).state == TaskState.PENDING.value


@pytest.fixture
def kept_connection() -> Iterator[Mock]:
    """The connection of a test is its transaction: it is only asked to close."""
    with patch("scheduler.engine.loop.connection", Mock(spec=["close"])) as found:
        yield found


def test_an_ending_is_kept_until_it_could_be_written(  # X17, X75
    clock: ManualClock, loop: Loop, gate: Gate, kept_connection: Mock
) -> None:
    task = ask(clock)
    loop.step()
    gate.leave.set()
    with patch.object(hand, "finish", side_effect=OperationalError("database is locked")):
        while not loop.hand.unwritten:
            assert loop.guarded_step() in (0.1, 2.0)
            wakeup.DUE.wait(0.05)
        assert reload(task).state == TaskState.RUNNING.value

    loop.guarded_step()

    assert reload(task).state == TaskState.FINISHED.value
    assert len(outcomes_of(task)) == 1


def test_an_ending_whose_commit_was_not_heard_of_is_not_written_twice(  # F-02
    clock: ManualClock, loop: Loop, gate: Gate, kept_connection: Mock
) -> None:
    task = ask(clock)
    loop.step()
    gate.leave.set()

    def committed_but_lost(*args: Any, **options: Any) -> Finished:
        finish(*args, **options)
        raise OperationalError("server closed the connection unexpectedly")

    with patch.object(hand, "finish", side_effect=committed_but_lost):
        while reload(task).state != TaskState.FINISHED.value:
            loop.guarded_step()
            wakeup.DUE.wait(0.05)
    loop.guarded_step()

    assert loop.hand.is_empty
    assert len(outcomes_of(task)) == 1


def test_a_claim_whose_commit_was_not_heard_of_goes_back(  # F-02
    clock: ManualClock, loop: Loop, gate: Gate, kept_connection: Mock
) -> None:
    task = ask(clock)
    with patch("scheduler.engine.intake.sift", side_effect=OperationalError("gone")):
        loop.guarded_step()
    assert reload(task).state == TaskState.RUNNING.value

    loop.guarded_step()

    row = reload(task)
    assert (row.attempt, row.crash_count, held(loop)) == (1, 0, [task])


def test_what_could_not_be_given_back_is_given_back_later(
    clock: ManualClock, loop: Loop, gate: Gate, kept_connection: Mock
) -> None:
    loop.hand.executor.pace.note(0.0)
    tasks = [ask(clock) for _ in range(4)]
    loop.step()
    gate.wait_inside(2)
    assert held(loop) == tasks
    clock.advance(1)
    with patch("scheduler.engine.reap.give_back", side_effect=OperationalError("gone")):
        loop.guarded_step()
    assert held(loop) == tasks

    loop.guarded_step()

    assert held(loop) == tasks[:2]
    assert [reload(task).state for task in tasks[2:]] == [TaskState.PENDING.value] * 2


def test_a_hook_that_was_called_is_settled_when_the_database_is_back(
    clock: ManualClock, loop: Loop, kept_connection: Mock
) -> None:
    REGISTRY.add(with_hooks("fails", Recorder(always=fail), HookRecorder()))
    task = ask(clock, "fails")
    loop.step()
    with patch("scheduler.engine.hooks.settled", side_effect=OperationalError("gone")):
        while not loop.hand.called:
            loop.guarded_step()
            wakeup.DUE.wait(0.05)

    loop.guarded_step()

    assert (reload(task).hook_run, loop.hand.is_empty) == (None, True)


def test_a_database_that_stays_away_is_asked_less_and_less_often(
    clock: ManualClock, loop: Loop, kept_connection: Mock
) -> None:
    with (
        patch.object(Loop, "step", side_effect=OperationalError("gone")),
        patch.object(hand.Hand, "recover"),
    ):
        pauses = [loop.guarded_step() for _ in range(8)]

    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert kept_connection.close.call_count == 8


def test_a_row_that_cannot_be_written_does_not_stop_the_others(
    clock: ManualClock, loop: Loop, gate: Gate
) -> None:
    gate.leave.set()
    good, bad = ask(clock, "quick", 1), ask(clock, "quick", 2)

    def refuses(endings: list[Ending], **options: Any) -> Finished:
        if any(one.claim.task_id == bad and isinstance(one.ended, Succeeded) for one in endings):
            raise DataError("invalid byte sequence")
        return finish(endings, **options)

    with patch.object(hand, "finish", side_effect=refuses):
        loop.run(until_idle=True)

    assert reload(good).state == TaskState.FINISHED.value
    assert reload(bad).state == TaskState.FAILED.value
    assert "could not be stored" in reload(bad).last_error


def test_what_a_runner_of_this_machine_left_is_free_at_once(
    clock: ManualClock, loop: Loop, gate: Gate
) -> None:
    dead = make_runner(
        "dead", pid=2**22 + 1, boot_id=runners.boot_id(), pid_namespace=runners.pid_namespace()
    )
    task = ask(clock)
    Task.objects.filter(pk=task).update(
        state=TaskState.RUNNING.value, ready=False, runner=dead, beat_at=clock.now,
        lease_token=1, attempt=1, runs=1, body_started=True,
    )  # fmt: skip

    loop.step()

    assert held(loop) == [task]
    assert reload(task).crash_count == 1
