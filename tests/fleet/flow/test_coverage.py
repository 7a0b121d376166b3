"""M of N done, and how schedules are."""

from datetime import datetime, timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from fleet.flow.coverage import Coverage, Done, coverage_of, coverages_of, covered, covered_pcs
from fleet.flow.dispatch import dispatch
from fleet.flow.plans import DispatchPlan
from fleet.flow.settling import Settled, settle
from fleet.flow.status import Status, status_of
from fleet.models import Agent, Command, Job, JobAgent, Origin, Result, Schedule
from fleet.rules.command_states import CommandState
from fleet.rules.targets import Target
from tests.fleet.make import (
    MINUTE,
    NOW,
    id_at,
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
        pytest.param(None, Done.PENDING, id="22.2#1 never ran"),
        pytest.param(S.SUCCEEDED, Done.OK, id="22.2#2 finished 0"),
        pytest.param(S.FAILED, Done.FAIL, id="22.2#3 finished 1"),
        pytest.param(S.OUTCOME_UNKNOWN, Done.FAIL, id="22.2#4 finished, exit null"),
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


Runs = list[tuple[CommandState, str]]


def has_run(job: Job, agent: Agent, runs: Runs) -> None:
    """Runs of the job with their versions, in the order of their reports, all at one instant."""
    for state, version in runs:
        if state is S.STARTED:
            running(job, agent)
            continue
        with transaction.atomic():
            settle([Settled(job.pk, agent.pk, None, state, version, NOW - HOUR)], now=NOW)


@pytest.mark.parametrize(
    ("runs", "stands"),
    [
        pytest.param([(S.SUCCEEDED, "1"), (S.FAILED, "2")], (Done.FAIL, "2"), id="22.2#5"),
        pytest.param([(S.SUCCEEDED, "1"), (S.STARTED, "1")], (Done.RUNNING, ""), id="22.2#6"),
        pytest.param(
            [(S.FAILED, "1"), (S.SUCCEEDED, "2")], (Done.OK, "2"), id="22.2#7 reported later"
        ),
    ],
)
def test_the_last_run_says_how_a_pc_stands(runs: Runs, stands: tuple[Done, str]) -> None:
    schedule, agent = make_schedule(), make_agent()
    has_run(schedule.job, agent, runs)
    (view,) = covered(schedule, covered_pcs(schedule))
    assert (view.state, view.version) == stands
    assert view.ended_at == (None if stands[0] is Done.RUNNING else NOW - HOUR)


def test_22_2_a_command_that_nobody_fetched_is_no_run() -> None:
    schedule, agent = make_schedule(), make_agent()
    running(schedule.job, agent, S.QUEUED)
    assert coverage_of(schedule) == Coverage(pending=1)


@pytest.mark.parametrize(
    ("pcs", "coverage"),
    [
        pytest.param(
            [
                [(S.SUCCEEDED, "1")],
                [(S.FAILED, "1")],
                [(S.SUCCEEDED, "1"), (S.STARTED, "1")],
                [],
                None,
            ],
            Coverage(ok=1, fail=1, running=1, pending=2),
            id="22.2#10",
        ),
        pytest.param([[], [], []], Coverage(pending=3), id="22.2#11"),
    ],
)
def test_each_pc_is_counted_once_also_those_that_are_off(
    pcs: list[Runs | None], coverage: Coverage
) -> None:
    schedule = make_schedule()
    for runs in pcs:
        agent = make_agent(last_seen_at=None if runs is None else NOW)
        has_run(schedule.job, agent, runs or [])
    found = coverage_of(schedule)
    assert found == coverage
    assert found.total == len(pcs)


@pytest.mark.parametrize(
    ("is_member", "is_the_job"),
    [
        pytest.param(False, True, id="22.2#8 a PC that is not meant"),
        pytest.param(True, False, id="22.2#9 another job"),
    ],
)
def test_who_is_not_meant_and_other_jobs_do_not_count(is_member: bool, is_the_job: bool) -> None:
    member, stranger = make_agent(), make_agent()
    make_group("office", member)
    schedule = make_schedule(target={"groups": ["office"]})
    ran(schedule.job if is_the_job else make_job(), member if is_member else stranger, S.SUCCEEDED)
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
        command_id=id_at(NOW - age),
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


@pytest.mark.parametrize(
    ("results", "counts", "last"),
    [
        pytest.param([], (0, 0), None, id="22.1#2"),
        pytest.param([("succeeded", 25, 0)], (0, 0), ("succeeded", 0), id="22.1#3"),
        pytest.param([("skipped", 1, None)], (0, 0), ("skipped", None), id="22.1#4"),
    ],
)
def test_the_last_day_counts_and_the_last_run_has_no_time_limit(
    results: list[tuple[str, int, int | None]],
    counts: tuple[int, int],
    last: tuple[str, int | None] | None,
) -> None:
    schedule = make_schedule()
    for outcome, hours, exit_code in results:
        result(schedule.job, outcome, hours * HOUR, exit_code)
    found = status(schedule)
    run = found.last_run
    assert (found.ok, found.failed, found.evaluation) == (*counts, None)
    assert ((run.outcome, run.exit_code) if run else None) == last


@pytest.mark.parametrize("others", [pytest.param(["failed"], id="22.1#1")])
def test_what_runs_now_is_the_last_run_and_other_jobs_do_not_count(others: list[str]) -> None:
    schedule = make_schedule()
    job = schedule.job
    result(job, "succeeded", 30 * HOUR)
    result(job, "failed", 2 * HOUR, 1)
    result(job, "succeeded", HOUR)
    for outcome in others:
        result(make_job(), outcome, HOUR, 1)
    command = running(job, make_agent())
    found = status(schedule)
    assert (found.ok, found.failed) == (1, 1)
    assert found.last_run is not None
    assert (found.last_run.command_id, found.last_run.outcome) == (str(command.pk), None)
    assert (found.last_run.exit_code, found.last_run.ended_at) == (None, None)


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
