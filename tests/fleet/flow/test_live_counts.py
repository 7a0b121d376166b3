"""How many executions of a job are under way: the rows of the case table."""

import pytest

from fleet.flow.tallies import Live, live_of
from fleet.models import Job
from fleet.rules.command_states import CommandState
from fleet.rules.execution_states import ExecutionState
from tests.fleet.make import make_command, make_execution, make_job

pytestmark = pytest.mark.django_db
S = CommandState


def execute(job: Job, state: CommandState) -> None:
    """An execution of the job with one command in `state`; it has ended where that has."""
    is_over = state is S.SUCCEEDED
    ended = ExecutionState.ENDED if is_over else ExecutionState.LIVE
    make_command(execution=make_execution(job, state=ended.value), state=state)


@pytest.mark.parametrize(
    ("executions", "live"),
    [
        pytest.param(
            {"inv-hw": [S.STARTED, S.STARTED, S.QUEUED], "patch-x": [S.STARTED]},
            {"inv-hw": Live(2, 1), "patch-x": Live(1, 0)},
            id="22.3#1",
        ),
        pytest.param({"j": [S.SUCCEEDED, S.STARTED]}, {"j": Live(1, 0)}, id="22.3#2"),
        pytest.param({"j": []}, {}, id="22.3#3"),
    ],
)
def test_executions_that_are_under_way_are_counted_by_job(
    executions: dict[str, list[CommandState]], live: dict[str, Live]
) -> None:
    jobs = {slug: make_job(slug) for slug in executions}
    for slug, states in executions.items():
        for state in states:
            execute(jobs[slug], state)
    found = live_of(jobs.values())
    assert {slug: found[job.pk] for slug, job in jobs.items() if job.pk in found} == live
