"""Run again where it failed, and nowhere else."""

from unittest import mock

import pytest

from fleet.models import Execution
from fleet.operations import repeating
from fleet.operations.repeating import run_again
from fleet.rules.command_states import CommandState
from fleet.rules.refusals import Conflict
from scheduler.public import Actor
from tests.fleet.make import NOW, make_agent, make_command, make_execution

pytestmark = pytest.mark.django_db
IRIS = Actor("user", "iris")


def test_only_the_pcs_where_it_failed_run_again() -> None:
    execution = make_execution(planned=4)
    for state in (
        CommandState.SUCCEEDED,
        CommandState.FAILED,
        CommandState.TIMED_OUT,
        CommandState.EXPIRED,
    ):
        make_command(make_agent(state.value), execution=execution, state=state)

    again = run_again(execution, actor=IRIS, now=NOW, reason="once more")

    assert again.pk != execution.pk
    assert (again.actor, again.reason) == ("iris", "once more")
    names = again.commands.order_by("agent__name").values_list("agent__name", flat=True)
    assert list(names) == ["failed", "timed_out"]


def test_where_nothing_failed_nothing_runs() -> None:
    execution = make_execution()
    make_command(execution=execution, state=CommandState.SUCCEEDED)

    with pytest.raises(Conflict, match="failed on no PC"):
        run_again(execution, actor=IRIS, now=NOW)
    assert Execution.objects.count() == 1


def test_more_pcs_than_a_run_may_name_are_refused() -> None:
    execution = make_execution()
    for _ in range(3):
        make_command(execution=execution, state=CommandState.FAILED)

    with (
        mock.patch.object(repeating, "MAX_PCS", 2),
        pytest.raises(Conflict, match="more than 2 PCs"),
    ):
        run_again(execution, actor=IRIS, now=NOW)
    assert Execution.objects.count() == 1
