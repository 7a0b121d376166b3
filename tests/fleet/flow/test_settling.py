"""The end of commands moves success facts, failure counts and due times."""

from datetime import datetime, timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from fleet.flow.settling import Settled, settle
from fleet.models import Agent, Job, JobAgent, Schedule, ScheduleAgent
from fleet.rules.command_states import CommandState
from tests.fleet.make import (
    MINUTE,
    NOW,
    make_agent,
    make_job,
    make_schedule,
    make_schedule_agent,
    revise,
)

pytestmark = pytest.mark.django_db
S = CommandState
HOUR = 60 * MINUTE


def ended(
    schedule: Schedule | None,
    agent: Agent,
    state: CommandState,
    *,
    at: datetime = NOW,
    job: Job | None = None,
) -> Settled:
    owner = job or (schedule.job if schedule else make_job())
    version = owner.current.version if owner.current else ""
    return Settled(owner.pk, agent.pk, schedule.pk if schedule else None, state, version, at)


def settled(*commands: Settled, now: datetime = NOW) -> None:
    with transaction.atomic():
        settle(commands, now=now)


def test_a_success_is_kept_and_the_machine_is_due_after_its_cooldown() -> None:
    schedule, agent = make_schedule(), make_agent()
    row = make_schedule_agent(
        schedule, agent, due_at=None, failures=3, last_failed_at=NOW, last_dispatched_at=NOW
    )
    settled(ended(schedule, agent, S.SUCCEEDED))
    fact = JobAgent.objects.get(job=schedule.job, agent=agent)
    row.refresh_from_db()
    assert (fact.last_success_at, fact.last_success_version) == (NOW, "1")
    assert (row.due_at, row.failures, row.last_failed_at) == (NOW + 6 * HOUR, 0, None)


def test_once_is_never_due_again_after_a_success() -> None:
    schedule, agent = make_schedule(when={"per_pc": "once"}), make_agent()
    row = make_schedule_agent(schedule, agent)
    settled(ended(schedule, agent, S.SUCCEEDED))
    row.refresh_from_db()
    assert row.due_at is None


@pytest.mark.parametrize("state", [S.FAILED, S.TIMED_OUT, S.KILLED, S.REFUSED])
def test_failures_in_a_row_double_the_wait(state: CommandState) -> None:
    schedule, agent = make_schedule(), make_agent()
    row = make_schedule_agent(schedule, agent, due_at=None, last_dispatched_at=NOW)
    dues = []
    for number in range(4):
        at = NOW + number * HOUR
        settled(ended(schedule, agent, state, at=at), now=at)
        row.refresh_from_db()
        assert row.due_at is not None
        dues.append(row.due_at - at)
    assert dues == [2 * MINUTE, 4 * MINUTE, 8 * MINUTE, 16 * MINUTE]
    assert row.failures == 4


@pytest.mark.parametrize("state", [S.EXPIRED, S.OUTCOME_UNKNOWN, S.SKIPPED, S.CANCELLED])
def test_silence_is_no_failure_and_waits_for_the_window_alone(state: CommandState) -> None:
    schedule, agent = make_schedule(), make_agent()
    row = make_schedule_agent(schedule, agent, due_at=None, last_dispatched_at=NOW)
    settled(ended(schedule, agent, state, at=NOW + HOUR), now=NOW + HOUR)
    row.refresh_from_db()
    assert (row.due_at, row.failures) == (NOW + 2 * MINUTE, 0)


def test_a_failure_of_another_schedule_or_by_hand_does_not_count() -> None:
    schedule, agent = make_schedule(), make_agent()
    row = make_schedule_agent(schedule, agent)
    settled(ended(None, agent, S.FAILED, job=schedule.job))
    row.refresh_from_db()
    assert row.failures == 0


def test_a_success_by_hand_satisfies_every_schedule_of_the_job() -> None:
    job, agent = make_job(), make_agent()
    rows = [make_schedule_agent(make_schedule(job=job), agent) for _ in range(2)]
    settled(ended(None, agent, S.SUCCEEDED, job=job))
    for row in rows:
        row.refresh_from_db()
        assert row.due_at == NOW + 6 * HOUR


def test_a_failure_does_not_undo_a_success() -> None:
    schedule, agent = make_schedule(), make_agent()
    row = make_schedule_agent(schedule, agent)
    settled(ended(schedule, agent, S.SUCCEEDED))
    settled(ended(schedule, agent, S.FAILED, at=NOW + MINUTE), now=NOW + MINUTE)
    row.refresh_from_db()
    assert row.due_at == NOW + 6 * HOUR
    assert JobAgent.objects.get().last_success_at == NOW


def test_a_late_older_success_never_replaces_a_newer_one() -> None:
    schedule, agent = make_schedule(), make_agent()
    settled(ended(schedule, agent, S.SUCCEEDED, at=NOW))
    settled(ended(schedule, agent, S.SUCCEEDED, at=NOW - HOUR))
    assert JobAgent.objects.get().last_success_at == NOW


@pytest.mark.parametrize(
    ("ends", "last"),
    [
        ([(S.SUCCEEDED, 0), (S.FAILED, 1)], (S.FAILED, 0)),
        ([(S.FAILED, 0), (S.SUCCEEDED, 1)], (S.SUCCEEDED, 1)),
        ([(S.FAILED, 1), (S.SUCCEEDED, 0)], (S.FAILED, 0)),
        ([(S.SUCCEEDED, 0), (S.SKIPPED, 1), (S.EXPIRED, 2)], (S.SUCCEEDED, 0)),
        ([(S.SUCCEEDED, 0), (S.OUTCOME_UNKNOWN, 1)], (S.OUTCOME_UNKNOWN, 0)),
        ([(S.FAILED, 0), (S.TIMED_OUT, 0)], (S.TIMED_OUT, None)),
        ([(S.OUTCOME_UNKNOWN, 1), (S.SUCCEEDED, 0)], (S.SUCCEEDED, 0)),
    ],
    ids=["failure", "success", "out of order", "not run", "silence", "a tie", "late answer"],
)
def test_the_last_run_and_the_last_success_are_kept_apart(
    ends: list[tuple[S, int]], last: tuple[S, int | None]
) -> None:
    schedule, agent = make_schedule(), make_agent()
    for state, hour in ends:
        settled(ended(schedule, agent, state, at=NOW + hour * HOUR), now=NOW + 3 * HOUR)
    fact = JobAgent.objects.get()
    success = NOW + last[1] * HOUR if last[1] is not None else None
    assert (fact.last_state, fact.last_success_at) == (last[0], success)


@pytest.mark.parametrize(
    ("ends", "succeeded_at"),
    [
        pytest.param([(S.SUCCEEDED, 1), (S.SUCCEEDED, 2)], 2, id="15.2#1"),
        pytest.param([(S.FAILED, 1)], None, id="15.2#2"),
        pytest.param([], None, id="15.2#3 in flight"),
        pytest.param([(S.SUCCEEDED, 1), (S.FAILED, 2)], 1, id="15.2#4"),
        pytest.param([(S.OUTCOME_UNKNOWN, 1)], None, id="15.2#6 reaped"),
        pytest.param([(S.SKIPPED, 1)], None, id="#909 a skip is no success"),
    ],
)
def test_only_successes_complete(ends: list[tuple[S, int]], succeeded_at: int | None) -> None:
    schedule, agent = make_schedule(), make_agent()
    for state, hour in ends:
        settled(ended(schedule, agent, state, at=NOW + hour * HOUR), now=NOW + 3 * HOUR)
    fact = JobAgent.objects.filter(job=schedule.job).exclude(last_success_at=None).first()
    expected = NOW + succeeded_at * HOUR if succeeded_at is not None else None
    assert (fact.last_success_at if fact else None) == expected


@pytest.mark.parametrize(
    ("of_this_job", "completions"),
    [pytest.param(False, 0, id="15.2#5"), pytest.param(True, 1, id="of this job")],
)
def test_a_success_of_another_job_completes_nothing_here(
    of_this_job: bool, completions: int
) -> None:
    schedule, agent = make_schedule(), make_agent()
    settled(ended(None, agent, S.SUCCEEDED, job=schedule.job if of_this_job else make_job()))
    assert JobAgent.objects.filter(job=schedule.job).count() == completions


def test_what_never_ran_leaves_no_fact() -> None:
    schedule, agent = make_schedule(), make_agent()
    settled(ended(schedule, agent, S.EXPIRED), ended(schedule, agent, S.CANCELLED))
    assert not JobAgent.objects.exists()


def test_once_per_version_is_due_again_at_a_new_version() -> None:
    schedule = make_schedule(when={"per_pc": "once_per_version"})
    agent = make_agent()
    row = make_schedule_agent(schedule, agent)
    old = ended(schedule, agent, S.SUCCEEDED)
    revise(schedule.job, version="2")
    settled(old)
    row.refresh_from_db()
    assert row.due_at is not None
    assert row.due_at <= NOW


def test_other_machines_and_other_jobs_are_left_alone() -> None:
    schedule, other = make_schedule(), make_schedule()
    agent, bystander = make_agent(), make_agent()
    rows = [make_schedule_agent(schedule, bystander), make_schedule_agent(other, agent)]
    settled(ended(schedule, agent, S.SUCCEEDED), ended(other, bystander, S.FAILED))
    for row in rows:
        row.refresh_from_db()
        assert row.due_at == NOW


def test_a_schedule_that_cannot_be_read_does_not_lose_the_result() -> None:
    schedule, agent = make_schedule(), make_agent()
    row = make_schedule_agent(schedule, agent)
    Schedule.objects.filter(pk=schedule.pk).update(manifest={"id": 1}, fingerprint="broken")
    settled(ended(schedule, agent, S.SUCCEEDED))
    row.refresh_from_db()
    assert row.due_at is None
    assert JobAgent.objects.get().last_success_at == NOW


def test_settling_costs_the_same_number_of_queries_for_one_and_for_many() -> None:
    schedule = make_schedule()
    agents = [make_agent() for _ in range(20)]
    for agent in agents:
        make_schedule_agent(schedule, agent)
    counts = []
    for some in (agents[:1], agents):
        with CaptureQueriesContext(
            connection,
        ) as queries:
            settled(*(ended(schedule, agent, S.SUCCEEDED) for agent in some))
        counts.append(len(queries))
    assert counts[0] == counts[1]
    due = ScheduleAgent.objects.values_list("due_at", flat=True).distinct()
    assert list(due) == [NOW + timedelta(hours=6)]
