"""What the database counts and chooses is what the rules say, on random fleets."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from fleet.flow.counting import count_standings
from fleet.flow.evaluate import Evaluated, evaluate, schedules_to_evaluate
from fleet.flow.rosters import due_rows
from fleet.flow.targets import compute_targets
from fleet.flow.tick import look_at
from fleet.models import Agent, Command, Execution, Job, JobAgent, Origin, ScheduleAgent
from fleet.rules.cooldown import Success
from fleet.rules.firing import Candidate, Reason, standing
from fleet.rules.freeze import NOT_FROZEN
from fleet.rules.liveness import is_alive
from tests.fleet.make import NOW, make_agent, make_job, make_schedule


@dataclass(frozen=True)
class Machine:
    """What is known about one agent."""

    last_seen_at: datetime | None
    success: Success | None
    last_dispatched_at: datetime | None
    failures: int
    last_failed_at: datetime | None
    is_busy: bool


SECONDS = st.integers(-5000, 400).map(lambda seconds: NOW + timedelta(seconds=seconds))
MACHINES = st.lists(
    st.builds(
        Machine,
        st.sampled_from([None, NOW, NOW, NOW - timedelta(seconds=121)]),
        st.none() | st.builds(Success, SECONDS, st.sampled_from(["1", "2"])),
        st.none() | SECONDS,
        st.integers(0, 9),
        st.none() | SECONDS,
        st.booleans(),
    ),
    max_size=6,
)
SCHEDULES: st.SearchStrategy[dict[str, Any]] = st.builds(
    lambda when, failing: {"when": when} | failing,
    st.sampled_from(
        [
            {"per_pc": "once"},
            {"per_pc": {"every": "10m"}},
            {"per_pc": {"every": "1h"}},
            {"per_pc": "once_per_version"},
        ]
    ),
    st.sampled_from([{}, {"on_failure": {"backoff": "off"}}]),
)
CAPS = st.sampled_from([None, None, 1, 2, 3])


def occupy(job: Job, agent: Agent) -> None:
    """Open a command of the job on the agent."""
    assert job.current is not None
    shared = {"job": job, "revision": job.current, "created_at": NOW, "deadline_at": NOW}
    execution = Execution.objects.create(
        origin=Origin.MANUAL, state="live", actor="alice", **shared
    )
    Command.objects.create(execution=execution, agent=agent, state="queued", **shared)


def add(schedule_id: int, job: Job, machine: Machine) -> Candidate:
    """Store a machine under the schedule; return it as the rules see it."""
    agent = make_agent(last_seen_at=machine.last_seen_at)
    ScheduleAgent.objects.create(
        schedule_id=schedule_id,
        agent=agent,
        last_dispatched_at=machine.last_dispatched_at,
        failures=machine.failures,
        last_failed_at=machine.last_failed_at,
    )
    success = machine.success
    if success is not None:
        JobAgent.objects.create(
            job=job,
            agent=agent,
            last_success_at=success.at,
            last_success_version=success.version,
        )
    if machine.is_busy:
        occupy(job, agent)
    return Candidate(
        agent=agent.pk,
        is_alive=is_alive(machine.last_seen_at, now=NOW),
        success=success,
        last_dispatched_at=machine.last_dispatched_at,
        failures=machine.failures,
        last_failed_at=machine.last_failed_at,
        in_flight=machine.is_busy,
    )


def evaluated(schedule_id: int) -> Evaluated:
    schedule = schedules_to_evaluate().get(pk=schedule_id)
    return evaluate(schedule, now=NOW, freeze=NOT_FROZEN)


def assert_counted_alike(keys: dict[str, Any], machines: list[Machine], timeout: str) -> None:
    """Each agent stops where the rule says, as the database counts it."""
    job = make_job(execute={"timeout": timeout})
    schedule_id = make_schedule(job=job, **keys).pk
    candidates = [add(schedule_id, job, machine) for machine in machines]
    found = evaluated(schedule_id)
    counted = count_standings(found.schedule, found.terms, now=NOW)
    expected = Counter(standing(one, found.facts).reason for one in candidates)
    assert dict(counted.by_reason) == dict(expected)


def assert_chosen_alike(keys: dict[str, Any], machines: list[Machine], cap: int | None) -> None:
    """A tick sends the job to whom the rule chooses, the longest waiting first, up to the cap."""
    job = make_job()
    if cap is not None:
        keys = keys | {"constraints": {"max_concurrent": cap}}
    schedule_id = make_schedule(job=job, **keys).pk
    candidates = [add(schedule_id, job, machine) for machine in machines]
    facts = evaluated(schedule_id).facts
    wanted = {one.agent for one in candidates if standing(one, facts).reason is Reason.DISPATCHED}
    compute_targets(schedule_id, now=NOW)
    due = list(due_rows(schedule_id, job.pk, NOW).values_list("agent_id", flat=True))
    assert set(due) == wanted
    busy = sum(machine.is_busy for machine in machines)
    free = len(due) if cap is None else max(0, cap - busy)
    look_at(schedule_id, now=NOW)
    sent = Command.objects.filter(schedule_id=schedule_id, created_at=NOW)
    assert set(sent.values_list("agent_id", flat=True)) == set(due[:free])


class RandomFleets(TestCase):
    """The set-based twin of each pure rule."""

    @given(SCHEDULES, MACHINES, st.sampled_from(["30s", "2h"]))
    def test_agents_stop_where_the_rule_says(
        self, keys: dict[str, Any], machines: list[Machine], timeout: str
    ) -> None:
        assert_counted_alike(keys, machines, timeout)

    @given(SCHEDULES, MACHINES, CAPS)
    def test_a_tick_sends_to_whom_the_rule_chooses(
        self, keys: dict[str, Any], machines: list[Machine], cap: int | None
    ) -> None:
        assert_chosen_alike(keys, machines, cap)


@pytest.mark.prove
class TenThousandRandomFleets(TestCase):
    """As above, five thousand cases each."""

    @settings(max_examples=5_000, deadline=None)
    @given(SCHEDULES, MACHINES, st.sampled_from(["30s", "2h"]))
    def test_agents_stop_where_the_rule_says(
        self, keys: dict[str, Any], machines: list[Machine], timeout: str
    ) -> None:
        assert_counted_alike(keys, machines, timeout)

    @settings(max_examples=5_000, deadline=None)
    @given(SCHEDULES, MACHINES, CAPS)
    def test_a_tick_sends_to_whom_the_rule_chooses(
        self, keys: dict[str, Any], machines: list[Machine], cap: int | None
    ) -> None:
        assert_chosen_alike(keys, machines, cap)
