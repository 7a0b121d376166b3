"""The end of commands, and what follows from it."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from fleet.flow.closing import Ending, close, close_all, end_executions, give_up, locked
from fleet.models import Command, Execution, JobAgent, Result, ScheduleAgent, Wake, Wave
from fleet.rules.command_states import CommandState
from fleet.rules.execution_states import ExecutionState
from tests.fleet.make import (
    NOW,
    make_agent,
    make_command,
    make_execution,
    make_job,
    make_schedule,
    make_schedule_agent,
)

pytestmark = pytest.mark.django_db
S = CommandState
LATER = NOW + timedelta(minutes=1)


def end(command: Command, state: CommandState, reason: str = "") -> list[Command]:
    with transaction.atomic():
        rows = Command.objects.filter(pk=command.pk)
        return close_all(rows, state, reason=reason, now=LATER)


def test_a_command_ends_with_its_state_reason_and_time() -> None:
    command = make_command(state=S.STARTED)

    ended = end(command, S.FAILED, "exit code 3")

    command.refresh_from_db()
    assert [one.pk for one in ended] == [command.pk]
    assert (command.state, command.reason, command.ended_at) == ("failed", "exit code 3", LATER)


@pytest.mark.parametrize("state", [S.SUCCEEDED, S.CANCELLED, S.EXPIRED])
def test_what_has_ended_stays_as_it_ended(state: CommandState) -> None:
    command = make_command(state=state, ended_at=NOW)

    assert end(command, S.OUTCOME_UNKNOWN) == []

    command.refresh_from_db()
    assert (command.state, command.ended_at) == (state.value, NOW)


def test_a_stale_copy_of_a_command_does_not_end_it_twice() -> None:
    job = make_job()
    job.slots_taken = 2
    job.save()
    command = make_command(job=job, state=S.STARTED, holds_slot=True)
    with transaction.atomic():
        mine = locked(Command.objects.filter(pk=command.pk))
        close([Ending(one, S.FAILED, "", LATER) for one in mine], now=LATER)
    with transaction.atomic():
        theirs = locked(Command.objects.filter(pk=command.pk))
        second = close([Ending(one, S.SUCCEEDED, "", LATER) for one in theirs], now=LATER)

    job.refresh_from_db()
    assert second == []
    assert job.slots_taken == 1


def test_the_end_frees_the_slot_and_calls_the_agent_that_has_waited_longest() -> None:
    job = make_job()
    job.slots_taken = 1
    job.save()
    running = make_command(job=job, state=S.STARTED, holds_slot=True, max_concurrent=1)
    first = make_command(job=job, max_concurrent=1)
    make_command(job=job, max_concurrent=1)

    end(running, S.SUCCEEDED)

    job.refresh_from_db()
    running.refresh_from_db()
    assert (job.slots_taken, running.holds_slot) == (0, False)
    if connection.vendor == "sqlite":
        assert [row.agents for row in Wake.objects.all()] == [str(first.agent_id)]


def test_a_counter_that_is_too_low_does_not_go_below_none() -> None:
    job = make_job()
    command = make_command(job=job, state=S.STARTED, holds_slot=True)

    end(command, S.SUCCEEDED)

    job.refresh_from_db()
    assert job.slots_taken == 0


def test_a_success_becomes_the_fact_and_moves_the_due_time() -> None:
    job, agent = make_job(version="3"), make_agent()
    schedule = make_schedule(job=job)
    row = make_schedule_agent(schedule, agent, due_at=None, last_dispatched_at=NOW)
    command = make_command(agent, job=job, state=S.STARTED, schedule_id=schedule.pk)

    end(command, S.SUCCEEDED)

    fact = JobAgent.objects.get(job=job, agent=agent)
    row.refresh_from_db()
    assert (fact.last_success_at, fact.last_success_version) == (LATER, "3")
    assert row.due_at == LATER + timedelta(hours=6)


Callbacks = Callable[..., object]


def test_an_execution_ends_with_its_last_command(
    django_capture_on_commit_callbacks: Callbacks,
) -> None:
    execution = make_execution()
    first = make_command(execution=execution, state=S.STARTED)
    last = make_command(execution=execution, state=S.STARTED)

    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[attr-defined]  # a context
        end(first, S.SUCCEEDED)
    execution.refresh_from_db()
    assert execution.state == ExecutionState.LIVE
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[attr-defined]  # a context
        end(last, S.FAILED)
    execution.refresh_from_db()
    assert (execution.state, execution.ended_at) == (ExecutionState.ENDED, LATER)


def test_an_execution_with_a_wave_to_come_goes_on() -> None:
    execution = make_execution()
    make_command(execution=execution, state=S.SUCCEEDED)
    Wave.objects.create(execution=execution, number=1, due_at=NOW, deadline_at=NOW)

    assert end_executions([execution.pk], now=LATER) == 0
    assert Execution.objects.get().state == ExecutionState.LIVE


@pytest.mark.parametrize("state", [ExecutionState.PLANNING, ExecutionState.CANCELLED])
def test_an_execution_that_is_not_live_is_left_alone(state: ExecutionState) -> None:
    execution = make_execution(state=state.value)

    assert end_executions([execution.pk], now=LATER) == 0


def test_what_is_given_up_gets_a_result_that_says_so() -> None:
    command = make_command(state=S.STARTED, attempt=2, started_at=NOW)

    with transaction.atomic():
        give_up(Command.objects.all(), reason="no answer", now=LATER)

    result = Result.objects.get(pk=command.pk)
    assert (result.outcome, result.reason, result.reaped) == ("outcome_unknown", "no answer", True)
    assert (result.attempt, result.started_at, result.received_at) == (2, NOW, LATER)


def test_giving_up_twice_changes_nothing() -> None:
    make_command(state=S.STARTED)
    with transaction.atomic():
        give_up(Command.objects.all(), reason="first", now=LATER)

    with transaction.atomic():
        again = give_up(Command.objects.all(), reason="second", now=LATER)

    assert again == []
    assert Result.objects.get().reason == "first"


def test_many_commands_end_with_as_many_queries_as_a_few() -> None:
    def queries(count: int) -> int:
        job = make_job()
        schedule = make_schedule(job=job)
        execution = make_execution(job)
        for _ in range(count):
            agent = make_agent()
            make_schedule_agent(schedule, agent, due_at=None)
            make_command(agent, execution=execution, state=S.STARTED)
        with (
            CaptureQueriesContext(
                connection,
            ) as captured,
            transaction.atomic(),
        ):
            close_all(execution.commands.all(), S.SUCCEEDED, reason="", now=LATER)
        return len(captured)

    assert queries(2) == queries(9)
    assert ScheduleAgent.objects.filter(due_at=None).count() == 0
