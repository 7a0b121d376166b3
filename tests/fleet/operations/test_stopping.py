"""Stopping one execution, or everything of a job."""

from datetime import timedelta
from typing import Any

import pytest

from fleet.models import Command, Execution, Wave, WaveState
from fleet.operations.stopping import kill_execution, kill_job
from fleet.rules.command_states import CommandState
from fleet.rules.refusals import Conflict
from scheduler.models import AuditEntry
from scheduler.public import Actor
from tests.fleet.make import NOW, make_command, make_execution, make_job
from tests.fleet.operations.audited import acts

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("asked")]
LATER = NOW + timedelta(hours=1)


def states(execution: Execution) -> dict[str, str]:
    rows = Command.objects.filter(execution=execution).values_list("agent__name", "state")
    return dict(rows)


def commands_of(execution: Execution, *wanted: CommandState) -> list[Command]:
    return [make_command(execution=execution, state=state) for state in wanted]


def test_what_no_agent_has_is_cancelled_and_with_it_the_execution(alice: Actor) -> None:
    execution = make_execution()
    commands = commands_of(execution, CommandState.STAGED, CommandState.QUEUED)
    kill_execution(execution, actor=alice, now=LATER, reason="wrong job")
    for command in commands:
        command.refresh_from_db()
        assert (command.state, command.reason) == ("cancelled", "stopped by alice: wrong job")
        assert command.ended_at == LATER
    assert (execution.state, execution.ended_at) == ("cancelled", LATER)
    assert execution.end_reason == "stopped by alice: wrong job"
    assert acts() == [("kill", "execution", str(execution.pk))]


@pytest.mark.parametrize("state", [CommandState.HANDED_OUT, CommandState.STARTED])
def test_what_an_agent_has_is_asked_to_stop_and_the_execution_waits_for_the_answer(
    alice: Actor, state: CommandState
) -> None:
    execution = make_execution()
    queued, held = commands_of(execution, CommandState.QUEUED, state)
    kill_execution(execution, actor=alice, now=LATER)
    queued.refresh_from_db()
    held.refresh_from_db()
    assert (queued.state, held.state) == ("cancelled", state)
    assert held.kill_requested_at == LATER
    assert (execution.state, execution.ended_at) == ("live", None)


def test_what_has_ended_is_left_alone(alice: Actor) -> None:
    execution = make_execution()
    done, _ = commands_of(execution, CommandState.SUCCEEDED, CommandState.QUEUED)
    kill_execution(execution, actor=alice, now=LATER)
    done.refresh_from_db()
    assert (done.state, done.kill_requested_at) == ("succeeded", None)


def test_a_second_kill_keeps_the_time_of_the_first(alice: Actor) -> None:
    execution = make_execution()
    [held] = commands_of(execution, CommandState.STARTED)
    kill_execution(execution, actor=alice, now=NOW)
    kill_execution(execution, actor=alice, now=LATER)
    held.refresh_from_db()
    assert held.kill_requested_at == NOW


@pytest.mark.parametrize("state", ["awaiting_approval", "planning"])
def test_an_execution_that_is_not_out_yet_is_cancelled(alice: Actor, state: str) -> None:
    execution = make_execution(state=state)
    kill_execution(execution, actor=alice, now=LATER)
    assert execution.state == "cancelled"


@pytest.mark.parametrize("state", ["ended", "cancelled"])
def test_what_is_over_cannot_be_stopped(alice: Actor, state: str) -> None:
    execution = make_execution(state=state)
    with pytest.raises(Conflict, match="over already"):
        kill_execution(execution, actor=alice, now=LATER)
    assert (execution.state, acts()) == (state, [])


def test_waves_still_to_come_are_stopped(alice: Actor) -> None:
    execution = make_execution()
    for number, state in enumerate([WaveState.RELEASED, WaveState.WAITING]):
        Wave.objects.create(
            execution=execution, number=number, due_at=NOW, deadline_at=LATER, state=state
        )
    kill_execution(execution, actor=alice, now=LATER)
    assert list(execution.waves.values_list("state", "reason")) == [
        ("released", ""),
        ("stopped", "stopped by alice"),
    ]


def test_a_long_reason_is_cut_where_it_is_stored_short_and_kept_in_the_audit(
    alice: Actor,
) -> None:
    execution = make_execution()
    kill_execution(execution, actor=alice, now=LATER, reason="x" * 600)
    assert len(execution.end_reason) <= 200
    assert AuditEntry.objects.get().reason == "x" * 600


def test_a_job_is_stopped_with_all_its_executions_and_what_agents_started(alice: Actor) -> None:
    job = make_job("patch")
    first, second = make_execution(job), make_execution(job, state="planning")
    other = make_command(state=CommandState.QUEUED)
    make_execution(job, state="ended")
    held = commands_of(first, CommandState.STARTED)[0]
    local = make_command(job=job, state=CommandState.STARTED, local_id="x")
    Command.objects.filter(pk=local.pk).update(execution=None)
    # make_command made an execution for it, which is not part of this.
    assert local.execution is not None
    local.execution.delete()
    assert kill_job(job, actor=alice, now=LATER, reason="bad") == 2
    for row in (first, second, held, local, other):
        row.refresh_from_db()
    assert (first.state, second.state) == ("live", "cancelled")
    assert (held.kill_requested_at, local.kill_requested_at) == (LATER, LATER)
    assert other.state == "queued"
    assert acts() == [("kill", "job", "patch")]
    assert AuditEntry.objects.get().after == {"executions": 2}


def test_a_job_of_which_nothing_runs_is_stopped_without_an_error(alice: Actor) -> None:
    assert kill_job(make_job(), actor=alice, now=NOW) == 0


def test_agents_that_must_stop_something_are_called(
    alice: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[Any] = []
    monkeypatch.setattr("fleet.operations.stopping.wake", called.extend)
    execution = make_execution()
    _, held = commands_of(execution, CommandState.QUEUED, CommandState.STARTED)
    kill_execution(execution, actor=alice, now=LATER)
    assert called == [held.agent_id]
