"""Nobody came: deadlines, silence, lost tasks and wrong counters."""

from datetime import datetime, timedelta
from unittest.mock import patch

import pytest
from django.db.models import QuerySet

from fleet.flow import sweep as sweeping
from fleet.flow.closing import close_all
from fleet.flow.dispatch import dispatch
from fleet.flow.plans import DispatchPlan
from fleet.flow.sweep import sweep
from fleet.flow.tallies import tallies_of
from fleet.models import Command, Execution, Job, Origin, OutputChunk, Result, ScheduleAgent
from fleet.rules.command_states import CommandState
from fleet.rules.execution_states import ExecutionState, Tally
from fleet.rules.targets import Target
from scheduler.models import Task
from tests.fleet.make import (
    MINUTE,
    NOW,
    make_agent,
    make_job,
    make_schedule,
    make_schedule_agent,
)

pytestmark = pytest.mark.django_db
HOUR = 60 * MINUTE
SECOND = timedelta(seconds=1)
S = CommandState


def make_command(state: CommandState = S.QUEUED, **fields: object) -> Command:
    """A command of an execution that went out an hour ago, in `state`."""
    agent, job = make_agent(), make_job()
    assert job.current is not None
    plan = DispatchPlan(job.current, Origin.MANUAL, "alice", Target(pcs=(agent.name,)))
    execution = dispatch(plan, now=NOW - HOUR)
    command = Command.objects.get(execution=execution)
    Command.objects.filter(pk=command.pk).update(state=state, **fields)
    command.refresh_from_db()
    return command


def execution_of(command: Command) -> Execution:
    assert command.execution is not None
    return command.execution


@pytest.mark.parametrize(
    ("state", "deadline_at", "expired"),
    [
        pytest.param(S.QUEUED, NOW - SECOND, True, id="21#1 ours: past its deadline"),
        pytest.param(S.STAGED, NOW - SECOND, True, id="21#1 of a later wave"),
        pytest.param(S.QUEUED, NOW + SECOND, False, id="21#2"),
        pytest.param(S.QUEUED, NOW, False, id="21#3"),
        pytest.param(S.HANDED_OUT, NOW - HOUR, False, id="21#4 handed out"),
        pytest.param(S.STARTED, NOW - HOUR, False, id="21#4 running"),
        pytest.param(S.SUCCEEDED, NOW - HOUR, False, id="21#4 completed"),
    ],
)
def test_41_what_nobody_fetched_before_its_deadline_expires(
    state: CommandState, deadline_at: datetime, expired: bool
) -> None:
    command = make_command(state, deadline_at=deadline_at, reap_at=NOW + HOUR)
    sweep(now=NOW)
    command.refresh_from_db()
    assert (command.state == S.EXPIRED) is expired
    if expired:
        assert (command.ended_at, command.reason) == (NOW, "not handed out before its deadline")


@pytest.mark.parametrize(
    ("state", "reap_at", "given_up"),
    [
        pytest.param(S.STARTED, NOW - 5 * MINUTE, True, id="21#8"),
        pytest.param(S.HANDED_OUT, NOW - SECOND, True, id="21 handed out and silent"),
        pytest.param(S.STARTED, NOW, False, id="21#10"),
        pytest.param(S.STARTED, NOW + HOUR, False, id="21#9"),
        pytest.param(S.SUCCEEDED, NOW - HOUR, False, id="21#11"),
    ],
)
def test_a_run_that_says_nothing_is_given_up(
    state: CommandState, reap_at: datetime, given_up: bool
) -> None:
    command = make_command(state, reap_at=reap_at, handed_out_at=NOW - 30 * HOUR)
    sweep(now=NOW)
    command.refresh_from_db()
    assert (command.state == S.OUTCOME_UNKNOWN) is given_up
    assert Result.objects.filter(reaped=True).exists() is given_up


@pytest.mark.parametrize(
    ("age_h", "given_up"),
    [
        pytest.param(25, True, id="21#6"),
        pytest.param(24, False, id="24 h exactly"),
        pytest.param(1, False, id="21#7"),
    ],
)
def test_a_run_without_a_limit_is_given_up_after_a_day(age_h: int, given_up: bool) -> None:
    command = make_command(S.STARTED, reap_at=None, handed_out_at=NOW - age_h * HOUR)
    sweep(now=NOW)
    command.refresh_from_db()
    assert (command.state == S.OUTCOME_UNKNOWN) is given_up


@pytest.mark.parametrize(
    ("state", "word"),
    [
        pytest.param(S.QUEUED, "expired", id="21#5"),
        pytest.param(S.STARTED, "given up", id="21#13"),
    ],
)
def test_sweeping_twice_changes_nothing_more(state: CommandState, word: str) -> None:
    make_command(state, deadline_at=NOW - SECOND, reap_at=NOW - SECOND)
    assert sweep(now=NOW) == {word: 1, "ended": 1}
    assert sweep(now=NOW + MINUTE) == {}


@pytest.mark.parametrize(
    "text",
    [pytest.param(b"half a line", id="21#12"), pytest.param(b"", id="21#12 no text")],
)
def test_what_a_silent_run_has_written_stays_beside_the_note(text: bytes) -> None:
    command = make_command(S.STARTED, reap_at=NOW - SECOND)
    chunk = OutputChunk.objects.create(
        command_id=command.pk, stream="stderr", offset=0, data=text, received_at=NOW
    )
    sweep(now=NOW)
    chunk.refresh_from_db()
    assert bytes(chunk.data) == text
    assert Result.objects.get(pk=command.pk).reason == sweeping.SILENT


@pytest.mark.parametrize(
    ("state", "before"),
    [
        pytest.param(S.STARTED, Tally(expected=1, running=1), id="21#14"),
        pytest.param(S.HANDED_OUT, Tally(expected=1, waiting=1), id="21#14 not started"),
    ],
)
def test_a_run_that_was_given_up_is_counted_by_its_execution(
    state: CommandState, before: Tally
) -> None:
    command = make_command(state, reap_at=NOW - SECOND)
    execution = execution_of(command)
    assert tallies_of([execution]) == {execution.pk: before}
    sweep(now=NOW)
    execution.refresh_from_db()
    assert execution.state == ExecutionState.ENDED
    assert tallies_of([execution]) == {execution.pk: Tally(expected=1, outcome_unknown=1)}


def test_silence_re_arms_the_schedule_after_its_window_and_is_no_failure() -> None:
    schedule = make_schedule()
    agent = make_agent()
    row = make_schedule_agent(schedule, agent)
    revision = schedule.job.current
    assert revision is not None
    plan = DispatchPlan(
        revision,
        Origin.SCHEDULE,
        "scheduler",
        Target(all=True),
        schedule=schedule,
        reconciles=True,
        wait=2 * MINUTE,
    )
    dispatch(plan, now=NOW - HOUR)
    assert sweep(now=NOW)["expired"] == 1
    row.refresh_from_db()
    assert (row.due_at, row.failures) == (NOW - HOUR + 2 * MINUTE, 0)


def test_many_are_ended_in_batches() -> None:
    for _ in range(5):
        make_command(S.QUEUED, deadline_at=NOW - SECOND)
    with patch.object(sweeping, "BATCH", 2):
        assert sweeping.expire_commands(NOW) == 5
    assert not Command.objects.exclude(state=S.EXPIRED).exists()


def test_an_agent_that_comes_while_its_command_expires_keeps_it() -> None:
    command = make_command(S.QUEUED, deadline_at=NOW - SECOND)

    def fetched(batch: QuerySet[Command], state: S, *, reason: str, now: datetime) -> list[Command]:
        Command.objects.filter(pk=command.pk).update(state=S.HANDED_OUT)
        return close_all(batch, state, reason=reason, now=now)

    with patch.object(sweeping, "close_all", fetched):
        sweeping.expire_commands(NOW)
    command.refresh_from_db()
    assert command.state == S.HANDED_OUT


@pytest.mark.parametrize(("age", "cancelled"), [(SECOND, True), (timedelta(0), False)])
def test_an_approval_that_never_came_cancels(age: timedelta, cancelled: bool) -> None:
    command = make_command()
    Execution.objects.filter(pk=execution_of(command).pk).update(
        state=ExecutionState.AWAITING_APPROVAL, deadline_at=NOW - age
    )
    sweep(now=NOW)
    execution = Execution.objects.get()
    assert (execution.state == ExecutionState.CANCELLED) is cancelled
    if cancelled:
        assert execution.end_reason == "nobody approved it in time"


@pytest.mark.parametrize(("age", "asked"), [(3 * MINUTE, True), (MINUTE, False)])
def test_planning_that_lost_its_task_gets_another(age: timedelta, asked: bool) -> None:
    command = make_command()
    Execution.objects.filter(pk=execution_of(command).pk).update(
        state=ExecutionState.PLANNING, created_at=NOW - age
    )
    sweep(now=NOW)
    key = str(command.execution_id)
    assert Task.objects.filter(kind="fleet.fanout", key=key).exists() is asked


def test_20_no_execution_stays_live_when_nothing_of_it_is_open() -> None:
    command = make_command(S.SUCCEEDED)
    assert sweep(now=NOW) == {"ended": 1}
    execution = execution_of(command)
    execution.refresh_from_db()
    assert (execution.state, execution.ended_at) == (ExecutionState.ENDED, NOW)


def test_21_an_execution_is_left_alone_while_something_of_it_is_open() -> None:
    make_command(S.QUEUED)
    assert sweep(now=NOW) == {}


@pytest.mark.parametrize(("stored", "corrected"), [(5, 1), (0, 1), (1, 0)])
def test_the_counter_of_slots_is_counted_again(stored: int, corrected: int) -> None:
    command = make_command(S.STARTED, holds_slot=True, reap_at=NOW + HOUR)
    Job.objects.filter(pk=command.job_id).update(slots_taken=stored)
    assert sweeping.audit_slots(NOW) == corrected
    assert Job.objects.get(pk=command.job_id).slots_taken == 1


def test_51_a_part_that_fails_does_not_stop_the_others() -> None:
    def broken(now: datetime) -> int:
        raise ConnectionError

    make_command(S.STARTED, reap_at=NOW - SECOND)
    with patch.dict(sweeping.PARTS, {"expired": broken}):
        assert sweep(now=NOW) == {"given up": 1, "ended": 1}


def test_an_idle_sweep_changes_nothing() -> None:
    assert sweep(now=NOW) == {}
    assert not ScheduleAgent.objects.exists()
