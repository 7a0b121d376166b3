"""M of N done, and how schedules are."""

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.flow.coverage import Coverage, Done, coverage_of, coverages_of, covered, covered_pcs
from fleet.flow.dispatch import dispatch
from fleet.flow.plans import DispatchPlan
from fleet.flow.status import Status, status_of
from fleet.models import Agent, Command, Job, JobAgent, Origin, Result, Schedule, new_id
from fleet.rules.command_states import CommandState
from fleet.rules.targets import Target
from tests.fleet.make import (
    MINUTE,
    NOW,
    make_agent,
    make_group,
    make_job,
    make_schedule,
    make_schedule_agent,
)

pytestmark = pytest.mark.django_db
HOUR = 60 * MINUTE
S = CommandState


def ran(job: Job, agent: Agent, state: CommandState, *, version: str = "1") -> None:
    """The fact of a last run that ended an hour ago."""
    JobAgent.objects.create(
        job=job,
        agent=agent,
        last_state=state.value,
        last_version=version,
        last_ended_at=NOW - HOUR,
        last_success_at=NOW - HOUR if state is S.SUCCEEDED else None,
    )


def running(job: Job, agent: Agent, state: CommandState = S.STARTED) -> Command:
    """A command of the job that is open on the agent."""
    assert job.current is not None
    plan = DispatchPlan(job.current, Origin.MANUAL, "alice", Target(pcs=(agent.name,)))
    command = Command.objects.get(execution=dispatch(plan, now=NOW))
    Command.objects.filter(pk=command.pk).update(state=state.value)
    return command


# ------------------------------------------------------------------------------- coverage


@pytest.mark.parametrize(
    ("state", "done"),
    [
        pytest.param(None, Done.PENDING, id="22.2 never ran"),
        pytest.param(S.SUCCEEDED, Done.OK, id="22.2 finished 0"),
        pytest.param(S.FAILED, Done.FAIL, id="22.2 finished 1"),
        pytest.param(S.OUTCOME_UNKNOWN, Done.FAIL, id="22.2 finished, exit null"),
        pytest.param(S.TIMED_OUT, Done.FAIL, id="22.2 timed out"),
    ],
)
@pytest.mark.parametrize("last_seen_at", [NOW, None], ids=["online", "offline"])
def test_a_pc_stands_as_its_last_run_ended(
    state: CommandState | None, done: Done, last_seen_at: datetime | None
) -> None:
    schedule, agent = make_schedule(), make_agent(last_seen_at=last_seen_at)
    if state is not None:
        ran(schedule.job, agent, state)
    (view,) = covered(schedule, covered_pcs(schedule))
    assert (view.state, view.version) == (done, "" if state is None else "1")


def test_22_2_a_run_that_goes_on_wins_and_hides_the_version() -> None:
    schedule, agent = make_schedule(), make_agent()
    ran(schedule.job, agent, S.SUCCEEDED)
    running(schedule.job, agent)
    (view,) = covered(schedule, covered_pcs(schedule))
    assert (view.state, view.version, view.ended_at) == (Done.RUNNING, "", None)


def test_22_2_a_command_that_nobody_fetched_is_no_run() -> None:
    schedule, agent = make_schedule(), make_agent()
    running(schedule.job, agent, S.QUEUED)
    assert coverage_of(schedule) == Coverage(pending=1)


def test_22_2_five_pcs() -> None:
    schedule = make_schedule()
    agents = [make_agent() for _ in range(4)]
    make_agent(last_seen_at=None)
    ran(schedule.job, agents[0], S.SUCCEEDED)
    ran(schedule.job, agents[1], S.FAILED)
    ran(schedule.job, agents[2], S.SUCCEEDED)
    running(schedule.job, agents[2])
    found = coverage_of(schedule)
    assert found == Coverage(ok=1, fail=1, running=1, pending=2)
    assert found.total == 5


def test_22_2_nobody_ran() -> None:
    schedule = make_schedule()
    for _ in range(3):
        make_agent()
    assert coverage_of(schedule) == Coverage(pending=3)


def test_22_2_who_is_not_meant_and_other_jobs_do_not_count() -> None:
    member, stranger = make_agent(), make_agent()
    make_group("office", member)
    schedule = make_schedule(target={"groups": ["office"]})
    ran(schedule.job, stranger, S.SUCCEEDED)
    ran(make_job(), member, S.SUCCEEDED)
    assert coverage_of(schedule) == Coverage(pending=1)


def test_a_list_of_pcs_can_be_narrowed_to_one_state() -> None:
    schedule = make_schedule()
    good, bad = make_agent("good"), make_agent("bad")
    ran(schedule.job, good, S.SUCCEEDED)
    ran(schedule.job, bad, S.FAILED)
    assert [agent.name for agent in covered_pcs(schedule)] == ["bad", "good"]
    assert [agent.name for agent in covered_pcs(schedule, state=Done.FAIL)] == ["bad"]


def test_a_rollout_covers_the_groups_of_its_waves() -> None:
    make_agent()
    make_group("canary", make_agent("c"))
    schedule = make_schedule(
        when={"calendar": {"at": "12:00"}},
        target={},
        rollout={"waves": [{"group": "canary", "delay": "0s"}]},
    )
    assert [agent.name for agent in covered_pcs(schedule)] == ["c"]


def test_a_list_counts_small_targets_and_leaves_large_ones_out() -> None:
    small, large = make_schedule(), make_schedule()
    agents = [make_agent() for _ in range(3)]
    make_schedule_agent(small, agents[0])
    ran(small.job, agents[0], S.SUCCEEDED)
    for agent in agents:
        make_schedule_agent(large, agent)
    assert coverages_of([small, large], most=2) == {small.pk: Coverage(ok=1)}


# --------------------------------------------------------------------------------- status


def result(job: Job, outcome: str, age: timedelta, exit_code: int | None = 0) -> Result:
    return Result.objects.create(
        command_id=new_id(),
        agent_id=1,
        job_id=job.pk,
        job_version="1",
        revision_id=1,
        outcome=outcome,
        exit_code=exit_code,
        received_at=NOW - age,
    )


def status(schedule: Schedule) -> Status:
    return status_of([schedule], now=NOW)[schedule.pk]


def test_22_1_the_last_day_counts_and_what_runs_is_the_last_run() -> None:
    schedule = make_schedule()
    job = schedule.job
    result(job, "succeeded", 30 * HOUR)
    result(job, "failed", 2 * HOUR, 1)
    result(job, "succeeded", HOUR)
    result(make_job(), "failed", HOUR, 1)
    command = running(job, make_agent())
    found = status(schedule)
    assert (found.ok, found.failed) == (1, 1)
    assert found.last_run is not None
    assert (found.last_run.command_id, found.last_run.outcome) == (str(command.pk), None)


def test_22_1_a_job_that_never_ran_has_nothing() -> None:
    found = status(make_schedule())
    assert (found.ok, found.failed, found.last_run, found.evaluation) == (0, 0, None, None)


def test_22_1_the_last_run_has_no_time_limit() -> None:
    schedule = make_schedule()
    kept = result(schedule.job, "succeeded", 25 * HOUR)
    found = status(schedule)
    assert (found.ok, found.failed) == (0, 0)
    assert found.last_run is not None
    assert (found.last_run.command_id, found.last_run.exit_code) == (str(kept.command_id), 0)


def test_22_1_exactly_a_day_old_still_counts() -> None:
    schedule = make_schedule()
    result(schedule.job, "failed", 24 * HOUR, 1)
    result(schedule.job, "failed", 24 * HOUR + timedelta(seconds=1), 1)
    assert status(schedule).failed == 1


@pytest.mark.parametrize("outcome", ["skipped", "expired", "cancelled"])
def test_what_did_not_run_is_neither_good_nor_bad(outcome: str) -> None:
    schedule = make_schedule()
    result(schedule.job, outcome, HOUR, None)
    found = status(schedule)
    assert (found.ok, found.failed) == (0, 0)


def test_the_next_run_is_the_next_fire_or_the_first_due_time() -> None:
    noon = make_schedule(when={"calendar": {"at": "18:00"}}, tz="utc")
    due, waiting, off = make_schedule(), make_schedule(), make_schedule(enabled=False)
    agent = make_agent()
    make_schedule_agent(due, agent, due_at=NOW + 2 * HOUR)
    make_schedule_agent(waiting, agent, due_at=NOW - HOUR)
    make_schedule_agent(off, agent)
    found = status_of([noon, due, waiting, off], now=NOW)
    times = [found[schedule.pk].next_run for schedule in (noon, due, waiting, off)]
    assert times == [NOW + 6 * HOUR, NOW + 2 * HOUR, NOW, None]


def test_a_list_costs_the_same_queries_whatever_its_length() -> None:
    counts = []
    for number in (1, 10):
        schedules = [make_schedule() for _ in range(number)]
        with CaptureQueriesContext(connection) as queries:
            status_of(schedules, now=NOW)
            coverages_of(schedules, most=100)
        counts.append(len(queries))
    assert counts[0] == counts[1]
