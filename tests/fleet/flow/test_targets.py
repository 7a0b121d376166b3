"""The rows of (schedule, agent) follow from target, groups and successes."""

from collections.abc import Iterator
from datetime import datetime
from unittest.mock import patch

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.flow import targets
from fleet.flow.auditing import audit_targets
from fleet.flow.joining import join
from fleet.flow.targets import compute_targets, count_in, count_out
from fleet.flow.tick import look_at, tick
from fleet.models import (
    Agent,
    AgentState,
    Command,
    Evaluation,
    Group,
    JobAgent,
    Membership,
    Schedule,
    ScheduleAgent,
)
from fleet.rules.firing import Reason
from scheduler.models import Task
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


def rows(schedule: Schedule) -> dict[str, datetime | None]:
    found = ScheduleAgent.objects.filter(schedule=schedule).order_by("agent__name")
    return dict(found.values_list("agent__name", "due_at"))


def succeeded(schedule: Schedule, agent: Agent, at: datetime, version: str = "1") -> None:
    JobAgent.objects.create(
        job=schedule.job, agent=agent, last_success_at=at, last_success_version=version
    )


@pytest.fixture
def chunks_of_two() -> Iterator[None]:
    with patch.object(targets, "CHUNK", 2):
        yield


def test_every_member_is_due_at_once_and_the_schedule_is_looked_at() -> None:
    schedule = make_schedule()
    Schedule.objects.update(targets_dirty_at=NOW, held=True)
    make_agent("a")
    make_agent("b", last_seen_at=None)
    assert compute_targets(schedule.pk, now=NOW) == 2
    assert rows(schedule) == {"a": NOW, "b": NOW}
    schedule.refresh_from_db()
    assert (schedule.targets_dirty_at, schedule.look_at, schedule.held) == (None, NOW, False)


@pytest.mark.parametrize(
    ("when", "age_h", "due"),
    [
        ({"per_pc": {"every": "6h"}}, 2, NOW + 4 * HOUR),
        ({"per_pc": {"every": "6h"}}, 9, NOW),
        ({"per_pc": "once"}, 9000, None),
        ({"per_pc": "once_per_version"}, 9, None),
        ({"per_target": "once"}, 9, None),
    ],
)
def test_successes_of_the_job_count_from_the_start(
    when: dict[str, object], age_h: int, due: datetime | None
) -> None:
    """Also those older than the results that are kept: the fact has a row of its own."""
    schedule, agent = make_schedule(when=when), make_agent("a")
    succeeded(schedule, agent, NOW - age_h * HOUR)
    compute_targets(schedule.pk, now=NOW)
    assert rows(schedule) == {"a": due}


def test_another_version_is_due_again() -> None:
    schedule = make_schedule(when={"per_pc": "once_per_version"})
    succeeded(schedule, make_agent("a"), NOW - HOUR, version="0.9")
    compute_targets(schedule.pk, now=NOW)
    assert rows(schedule) == {"a": NOW}


@pytest.mark.usefixtures("chunks_of_two")
def test_81_members_come_and_go_with_their_group() -> None:
    agents = [make_agent(f"m-{number}") for number in range(7)]
    group = make_group("office", *agents[:5])
    schedule = make_schedule(target={"groups": ["Office"]})
    assert compute_targets(schedule.pk, now=NOW) == 5
    Membership.objects.filter(agent__in=agents[:2]).delete()
    Membership.objects.create(group=group, agent=agents[6])
    assert compute_targets(schedule.pk, now=NOW + MINUTE) == 3
    assert sorted(rows(schedule)) == ["m-2", "m-3", "m-4", "m-6"]


@pytest.mark.usefixtures("chunks_of_two")
def test_computing_again_changes_nothing() -> None:
    schedule = make_schedule()
    for _ in range(5):
        make_agent()
    assert compute_targets(schedule.pk, now=NOW) == 5
    before = rows(schedule)
    assert compute_targets(schedule.pk, now=NOW + MINUTE) == 0
    assert rows(schedule) == before


def test_an_edit_of_every_moves_the_due_times_and_leaves_the_waiting_alone() -> None:
    schedule = make_schedule(when={"per_pc": {"every": "1h"}})
    done, waiting = make_agent("done"), make_agent("waiting")
    succeeded(schedule, done, NOW - 30 * MINUTE)
    make_schedule_agent(schedule, done, due_at=NOW + 5 * HOUR)
    make_schedule_agent(schedule, waiting, due_at=NOW - HOUR)
    assert compute_targets(schedule.pk, now=NOW) == 1
    assert rows(schedule) == {"done": NOW + 30 * MINUTE, "waiting": NOW - HOUR}


def test_a_failing_agent_keeps_its_pause() -> None:
    schedule, agent = make_schedule(), make_agent("a")
    make_schedule_agent(
        schedule, agent, failures=3, last_failed_at=NOW - MINUTE, last_dispatched_at=NOW - HOUR
    )
    compute_targets(schedule.pk, now=NOW)
    assert rows(schedule) == {"a": NOW + 7 * MINUTE}


def test_a_parked_agent_that_still_waits_stays_parked() -> None:
    schedule = make_schedule()
    row = make_schedule_agent(
        schedule, make_agent(last_seen_at=None), due_at=None, parked_due_at=NOW - HOUR
    )
    assert compute_targets(schedule.pk, now=NOW) == 0
    row.refresh_from_db()
    assert (row.due_at, row.parked_due_at) == (None, NOW - HOUR)


def test_an_edit_while_it_is_computed_is_not_forgotten() -> None:
    schedule = make_schedule()
    Schedule.objects.update(targets_dirty_at=NOW)
    make_agent()
    later = NOW + MINUTE
    original = targets._compute_range

    def edited_meanwhile(*args: object, **kwargs: object) -> int:
        Schedule.objects.update(targets_dirty_at=later)
        return original(*args, **kwargs)  # type: ignore[arg-type]  # passed through

    with patch.object(targets, "_compute_range", edited_meanwhile):
        compute_targets(schedule.pk, now=NOW)
    schedule.refresh_from_db()
    assert schedule.targets_dirty_at == later


def test_schedules_that_need_no_rows_get_none() -> None:
    make_agent()
    calendar = make_schedule(when={"calendar": {"at": "12:00"}})
    assert compute_targets(calendar.pk, now=NOW) == 0
    assert compute_targets(12345, now=NOW) == 0
    assert not ScheduleAgent.objects.exists()


def test_a_new_machine_is_counted_into_what_means_it_without_computing_the_rest() -> None:
    office = make_group("office")
    meant = [
        make_schedule(target={"all": True}),
        make_schedule(target={"groups": ["office"]}),
        make_schedule(target={"pcs": ["NEW"]}),
    ]
    make_schedule(target={"pcs": ["other"]})
    make_schedule(enabled=False)
    agent = make_agent("new")
    join(agent, office, now=NOW)
    found = ScheduleAgent.objects.filter(agent=agent).values_list("schedule_id", "due_at")
    assert dict(found) == {schedule.pk: NOW for schedule in meant}
    assert not Schedule.objects.exclude(targets_dirty_at=None).exists()


def test_counting_in_twice_is_once() -> None:
    make_schedule()
    agent = make_agent()
    for _ in range(2):
        count_in(agent, now=NOW)
    assert ScheduleAgent.objects.count() == 1


def test_a_machine_that_waits_to_be_accepted_is_not_counted_in() -> None:
    make_schedule()
    agent = make_agent(state=AgentState.PENDING)
    join(agent, None, now=NOW)
    assert not ScheduleAgent.objects.exists()


def test_a_machine_that_is_gone_is_counted_out_everywhere() -> None:
    agent, other = make_agent("gone"), make_agent("stays")
    for _ in range(2):
        schedule = make_schedule()
        for one in (agent, other):
            make_schedule_agent(schedule, one)
    count_out(agent)
    left = ScheduleAgent.objects.values_list("agent__name", flat=True)
    assert sorted(left) == ["stays", "stays"]


def test_the_audit_puts_right_what_somebody_broke_and_says_what() -> None:
    broken, right = make_schedule("broken"), make_schedule("right")
    agent = make_agent("a")
    make_schedule_agent(broken, agent, due_at=None)
    make_schedule_agent(right, agent, due_at=NOW)
    assert audit_targets(now=NOW) == {"broken": 1}
    assert rows(broken) == {"a": NOW}


def test_a_broken_schedule_does_not_stop_the_audit() -> None:
    broken, right = make_schedule(), make_schedule("right")
    Schedule.objects.filter(pk=broken.pk).update(manifest={"id": 1}, fingerprint="broken")
    make_agent("a")
    assert audit_targets(now=NOW) == {"right": 1}
    assert rows(right) == {"a": NOW}


def test_computing_costs_the_same_queries_for_one_agent_and_for_many() -> None:
    job = make_job()
    counts = []
    for agents in (1, 30):
        for _ in range(agents):
            make_agent()
        schedule = make_schedule(job=job)
        with CaptureQueriesContext(connection) as queries:
            compute_targets(schedule.pk, now=NOW)
        counts.append(len(queries))
    assert counts[0] == counts[1]
    assert Group.objects.count() == 0


def test_the_first_machine_of_an_empty_target_is_sent_the_job_by_the_next_tick() -> None:
    schedule = make_schedule(target={"all": True})
    look_at(schedule.pk, now=NOW)
    assert Evaluation.objects.get(schedule=schedule, until=None).reason == Reason.NO_TARGET

    agent = make_agent("pc-a")
    assert count_in(agent, now=NOW) == 1
    tick(now=NOW + MINUTE)

    assert [command.agent for command in Command.objects.all()] == [agent]
    assert Task.objects.filter(kind="fleet.tick", key="by hand").exists()
