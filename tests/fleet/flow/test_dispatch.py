"""A plan becomes an execution and its commands, all of them or none."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from unittest.mock import patch

import pytest

from fleet.flow import filling
from fleet.flow.deliver import deliver
from fleet.flow.dispatch import NothingToDispatchError, dispatch, start
from fleet.flow.filling import fill_chunk
from fleet.flow.plans import Chosen, DispatchPlan, DueAgents, LiveMembers, WholeTarget
from fleet.models import (
    Agent,
    AgentState,
    Command,
    Execution,
    Origin,
    Schedule,
    Wave,
    WaveState,
)
from fleet.rules.command_states import CommandState
from fleet.rules.execution_states import ExecutionState
from fleet.rules.fanout import drawn_delay, seed_of
from fleet.rules.retries import RetryPolicy
from fleet.rules.targets import FailureLimit, Rollout, Target
from fleet.rules.targets import Wave as PlannedWave
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
EVERYBODY = Target(all=True)


def manual(target: Target = EVERYBODY) -> DispatchPlan:
    job = make_job()
    assert job.current is not None
    return DispatchPlan(job.current, Origin.MANUAL, "alice", target)


def names(execution: Execution) -> list[str]:
    commands = Command.objects.filter(execution=execution)
    return sorted(commands.values_list("agent__name", flat=True))


@pytest.fixture
def small_chunks() -> Iterator[None]:
    """Ten commands to a transaction, so that a few agents make a large execution."""
    with patch.object(filling, "CHUNK", 10):
        yield


def test_everybody_gets_one_command_whatever_targets_overlap() -> None:
    first, second = make_agent("a-1"), make_agent("a-2", last_seen_at=None)
    make_agent("a-3")
    make_group("g1", first)
    make_group("g2", first, second)
    execution = dispatch(manual(Target(groups=("G1", "g2"), pcs=("A-1",))), now=NOW)
    assert names(execution) == ["a-1", "a-2"]
    assert (execution.state, execution.planned) == (ExecutionState.LIVE, 2)


@pytest.mark.parametrize(
    ("target", "meant"),
    [
        pytest.param(Target(all=True), "ABCDE", id="15.1#1"),
        pytest.param(Target(groups=("g1",)), "ACD", id="15.1#2"),
        pytest.param(Target(pcs=("D", "Zed")), "D", id="15.1#3 an unknown name means nobody"),
        pytest.param(Target(all=True, pcs=("D",)), "ABCDE", id="15.1#4"),
        pytest.param(Target(pcs=("A", "A")), "A", id="15.1#7"),
    ],
)
def test_a_manual_run_means_the_whole_roster_alive_or_not(target: Target, meant: str) -> None:
    roster = {name: make_agent(name, last_seen_at=None) for name in "ABCDE"}
    make_group("g1", roster["A"], roster["C"], roster["D"])
    assert names(dispatch(manual(target), now=NOW)) == list(meant)


@pytest.mark.parametrize(
    ("target", "kept", "last_seen_at"),
    [
        pytest.param(
            Target(all=True, groups=("g1",), pcs=("pc-a",)),
            {"all": True, "groups": ["g1"], "pcs": ["pc-a"]},
            NOW,
            id="18#4 ours: counted by PC",
        ),
        pytest.param(EVERYBODY, {"all": True}, None, id="18#8 ours: nobody alive, all are meant"),
    ],
)
def test_the_target_is_kept_as_asked_and_counts_its_pcs(
    target: Target, kept: dict[str, object], last_seen_at: datetime | None
) -> None:
    make_group("g1", *(make_agent(name, last_seen_at=last_seen_at) for name in ("pc-a", "pc-b")))
    execution = dispatch(manual(target), now=NOW)
    assert (execution.target, execution.planned) == (kept, 2)
    assert names(execution) == ["pc-a", "pc-b"]


@pytest.mark.parametrize("target", [Target(groups=("nope",)), Target()], ids=["15.1#5", "15.1#6"])
def test_nobody_meant_is_refused_and_writes_nothing(target: Target) -> None:
    make_agent()
    with pytest.raises(NothingToDispatchError):
        dispatch(manual(target), now=NOW)
    assert not Execution.objects.exists()


@pytest.mark.parametrize(
    ("state", "is_member"),
    [
        (AgentState.ACTIVE, True),
        (AgentState.QUARANTINED, True),
        (AgentState.PENDING, False),
        (AgentState.REVOKED, False),
    ],
)
def test_only_accepted_machines_are_members(state: AgentState, is_member: bool) -> None:
    make_agent("here")
    make_agent("other", state=state)
    assert ("other" in names(dispatch(manual(), now=NOW))) is is_member


def test_a_command_carries_what_its_plan_says() -> None:
    make_agent()
    plan = replace(
        manual(),
        reason="test",
        override_freeze=True,
        retry=RetryPolicy(2, 5 * MINUTE),
        max_concurrent=3,
        params={"NAME": "x"},
        wait=HOUR,
        actor_id=7,
    )
    execution = dispatch(plan, now=NOW)
    command = Command.objects.get()
    assert (command.state, command.wave, command.seq) == (CommandState.QUEUED, 0, 0)
    assert (command.override_freeze, command.max_concurrent) == (True, 3)
    assert (command.created_at, command.start_after) == (NOW, NOW)
    assert (command.deadline_at, execution.deadline_at) == (NOW + HOUR, NOW + HOUR)
    assert (command.pk.version, command.reason, command.holds_slot) == (7, "", False)
    assert execution.plan["retry"] == {"max": 2, "backoff_s": 300}
    assert execution.plan["params"] == {"NAME": "x"}
    assert (execution.actor, execution.actor_id, execution.reason) == ("alice", 7, "test")


def test_a_deadline_of_its_own_is_the_last_allowed_instant() -> None:
    make_agent()
    dispatch(replace(manual(), deadline_at=NOW + HOUR), now=NOW)
    assert Command.objects.get().deadline_at == NOW + HOUR


def test_58_the_database_draws_the_delays_of_the_rule() -> None:
    agents = [make_agent() for _ in range(40)]
    span, wait = timedelta(minutes=7, milliseconds=13), timedelta(hours=3)
    plan = replace(manual(), jitter=span, wait=wait)
    execution = dispatch(plan, now=NOW)
    seed = seed_of(execution.job.slug)
    found = dict(Command.objects.values_list("agent", "start_after"))
    assert found == {
        agent.pk: NOW + drawn_delay(agent.pk, seed=seed, span=span) for agent in agents
    }
    for command in Command.objects.all():
        assert command.start_after is not None
        assert command.deadline_at == command.start_after + wait


def test_ids_are_of_the_moment_and_of_version_seven() -> None:
    for _ in range(20):
        make_agent()
    dispatch(manual(), now=NOW)
    ids = list(Command.objects.values_list("pk", flat=True))
    assert len(set(ids)) == 20
    assert {key.version for key in ids} == {7}
    assert {key.variant for key in ids} == {"specified in RFC 4122"}
    assert {key.int >> 80 for key in ids} == {int(NOW.timestamp() * 1000)}


def test_who_is_in_flight_is_left_out_where_the_plan_says_so() -> None:
    busy, free = make_agent("busy"), make_agent("free")
    plan = manual(Target(pcs=("busy",)))
    dispatch(plan, now=NOW)
    again = replace(plan, target=EVERYBODY, selection=WholeTarget(skip_in_flight=True))
    assert names(dispatch(again, now=NOW)) == [free.name]
    assert busy.commands.count() == 1


def test_live_members_are_those_heard_lately() -> None:
    make_agent("here")
    make_agent("away", last_seen_at=NOW - HOUR)
    execution = dispatch(replace(manual(), selection=LiveMembers()), now=NOW)
    assert names(execution) == ["here"]


# ------------------------------------------------------------------------ reconcile schedules


def reconcile(schedule: Schedule, agents: list[Agent]) -> DispatchPlan:
    revision = schedule.job.current
    assert revision is not None
    return DispatchPlan(
        revision,
        Origin.SCHEDULE,
        "scheduler",
        EVERYBODY,
        selection=Chosen(tuple(agent.pk for agent in agents)),
        schedule=schedule,
        reconciles=True,
    )


def test_the_loser_of_a_race_for_an_agent_writes_nothing() -> None:
    agent = make_agent()
    schedule = make_schedule()
    row = make_schedule_agent(schedule, agent)
    dispatch(reconcile(schedule, [agent]), now=NOW)
    other = make_schedule(job=schedule.job)
    with pytest.raises(NothingToDispatchError):
        dispatch(reconcile(other, [agent]), now=NOW)
    assert Command.objects.count() == Execution.objects.count() == 1
    row.refresh_from_db()
    assert row.due_at is None


def test_a_reconcile_dispatch_mutes_its_agents_only() -> None:
    schedule, sent, other = make_schedule(), make_agent(), make_agent()
    rows = [make_schedule_agent(schedule, agent) for agent in (sent, other)]
    dispatch(reconcile(schedule, [sent]), now=NOW + MINUTE)
    for row in rows:
        row.refresh_from_db()
    assert (rows[0].due_at, rows[0].last_dispatched_at) == (None, NOW + MINUTE)
    assert (rows[1].due_at, rows[1].last_dispatched_at) == (NOW, None)


@pytest.mark.parametrize(
    ("marked", "other"),
    [
        pytest.param(
            ("collect-winlog-events", "PC-01"),
            ("collect-winlog-events", "PC-02"),
            id="14.4#1 ours: one row for each schedule and PC",
        ),
        pytest.param(("a.b", "c"), ("a", "b.c"), id="14.4#2"),
    ],
)
def test_a_mark_is_of_one_schedule_and_one_pc(
    marked: tuple[str, str], other: tuple[str, str]
) -> None:
    schedules = {slug: make_schedule(slug) for slug in sorted({marked[0], other[0]})}
    agents = {name: make_agent(name) for name in (marked[1], other[1])}
    rows = [
        make_schedule_agent(schedules[slug], agents[name], due_at=NOW)
        for slug, name in (marked, other)
    ]
    dispatch(reconcile(schedules[marked[0]], [agents[marked[1]]]), now=NOW)
    for row in rows:
        row.refresh_from_db()
    assert [row.last_dispatched_at for row in rows] == [NOW, None]


@pytest.mark.parametrize(
    ("when", "of_the_target"),
    [
        pytest.param({"per_target": "once"}, NOW, id="14.4#3"),
        pytest.param({"per_pc": "once"}, None, id="14.4#4"),
    ],
)
def test_the_mark_of_a_target_is_another_than_that_of_a_pc(
    when: dict[str, object], of_the_target: datetime | None
) -> None:
    schedule, agent = make_schedule("nightly", when=when), make_agent()
    row = make_schedule_agent(schedule, agent)
    dispatch(reconcile(schedule, [agent]), now=NOW)
    schedule.refresh_from_db()
    row.refresh_from_db()
    assert (schedule.last_dispatched_at, row.last_dispatched_at) == (of_the_target, NOW)


# ------------------------------------------------------------------------------ large ones


@pytest.mark.usefixtures("small_chunks")
def test_a_large_execution_is_planned_and_filled_in_chunks() -> None:
    for number in range(25):
        make_agent(f"many-{number:02}")
    execution = dispatch(manual(), now=NOW)
    assert execution.state == ExecutionState.PLANNING
    assert not Command.objects.exists()
    assert Task.objects.filter(kind="fleet.fanout", key=str(execution.pk)).exists()
    assert [fill_chunk(execution.pk, now=NOW) for _ in range(3)] == [True, True, False]
    execution.refresh_from_db()
    assert (execution.state, execution.planned) == (ExecutionState.LIVE, 25)
    assert Command.objects.filter(state=CommandState.QUEUED).count() == 25


@pytest.mark.usefixtures("small_chunks")
def test_f19_no_agent_is_given_a_command_before_all_are_written() -> None:
    agents = [make_agent() for _ in range(25)]
    execution = dispatch(manual(), now=NOW)
    for is_complete in (False, False, True):
        fill_chunk(execution.pk, now=NOW)
        delivery = deliver(agents[0].pk, in_hand=frozenset(), most_bytes=10**6, now=NOW)
        assert bool(delivery.envelopes) is is_complete


@pytest.mark.usefixtures("small_chunks")
def test_f19_filling_goes_on_after_a_crash_and_doubles_nothing() -> None:
    for _ in range(25):
        make_agent()
    execution = dispatch(manual(), now=NOW)
    for _ in range(2):
        fill_chunk(execution.pk, now=NOW)
    with (
        patch("fleet.flow.filling.publish", side_effect=ConnectionError),
        pytest.raises(ConnectionError),
    ):
        fill_chunk(execution.pk, now=NOW)
    assert Command.objects.count() == 20  # the chunk that failed left nothing
    assert fill_chunk(execution.pk, now=NOW) is False
    assert Command.objects.values("agent").distinct().count() == Command.objects.count() == 25


@pytest.mark.usefixtures("small_chunks")
def test_filling_what_is_filled_changes_nothing() -> None:
    for _ in range(11):
        make_agent()
    execution = dispatch(manual(), now=NOW)
    while fill_chunk(execution.pk, now=NOW):
        pass
    assert fill_chunk(execution.pk, now=NOW) is False
    assert Command.objects.count() == 11


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize(("limit", "sent"), [(None, 25), (13, 13), (20, 20)])
def test_due_agents_are_filled_up_to_the_limit_longest_due_first(
    limit: int | None, sent: int
) -> None:
    schedule = make_schedule()
    for number in range(25):
        due = NOW - number * MINUTE
        make_schedule_agent(schedule, make_agent(f"due-{number:02}"), due_at=due)
    make_schedule_agent(schedule, make_agent("later"), due_at=NOW + HOUR)
    plan = replace(reconcile(schedule, []), selection=DueAgents(limit))
    execution = dispatch(plan, now=NOW)
    while fill_chunk(execution.pk, now=NOW):
        pass
    assert names(execution) == [f"due-{number:02}" for number in range(25 - sent, 25)]
    assert schedule.schedule_agents.filter(due_at=None).count() == sent


# --------------------------------------------------------------------------------- approval


def test_an_execution_that_waits_for_approval_has_no_commands() -> None:
    make_agent()
    execution = dispatch(replace(manual(), needs_approval=True), now=NOW)
    assert execution.state == ExecutionState.AWAITING_APPROVAL
    assert not Command.objects.exists()


def test_once_approved_its_times_count_from_then() -> None:
    make_agent()
    execution = dispatch(replace(manual(), needs_approval=True, wait=HOUR), now=NOW)
    assert start(execution, now=NOW + 5 * HOUR) is True
    command = Command.objects.get()
    assert (command.start_after, command.deadline_at) == (NOW + 5 * HOUR, NOW + 6 * HOUR)
    execution.refresh_from_db()
    assert (execution.state, execution.deadline_at) == (ExecutionState.LIVE, NOW + 6 * HOUR)


def test_approval_does_not_move_a_deadline_of_its_own() -> None:
    make_agent()
    plan = replace(manual(), needs_approval=True, deadline_at=NOW + 3 * HOUR)
    execution = dispatch(plan, now=NOW)
    start(execution, now=NOW + HOUR)
    assert Command.objects.get().deadline_at == NOW + 3 * HOUR


def test_only_the_first_of_two_stale_copies_starts_it() -> None:
    make_agent()
    dispatch(replace(manual(), needs_approval=True), now=NOW)
    mine, theirs = Execution.objects.get(), Execution.objects.get()
    assert start(theirs, now=NOW) is True
    assert start(mine, now=NOW) is False
    assert Command.objects.count() == 1


# ------------------------------------------------------------------------------------ waves


def rolled_out(*delays: timedelta, limit: FailureLimit | None = None) -> DispatchPlan:
    waves = tuple(PlannedWave(f"wave{n}", delay) for n, delay in enumerate(delays))
    return replace(manual(), rollout=Rollout(waves, limit))


@pytest.mark.parametrize(
    "target", [pytest.param(Target(), id="18#5"), pytest.param(EVERYBODY, id="18#6")]
)
def test_waves_mean_the_members_of_their_groups_whatever_the_target(target: Target) -> None:
    make_agent("other")
    make_group("wave0", make_agent("w-0"))
    make_group("wave1", make_agent("w-1"))
    plan = replace(rolled_out(0 * MINUTE, 10 * MINUTE), target=target)
    execution = dispatch(plan, now=NOW)
    assert (names(execution), execution.planned) == (["w-0", "w-1"], 2)


def test_18_an_agent_of_two_waves_goes_with_the_first() -> None:
    both, late = make_agent("both"), make_agent("late")
    make_group("wave0", both)
    make_group("wave1", both, late)
    dispatch(rolled_out(0 * MINUTE, 10 * MINUTE), now=NOW)
    found = dict(Command.objects.values_list("agent__name", "wave"))
    assert found == {"both": 0, "late": 1}


def test_18_only_the_first_wave_is_visible_and_the_others_have_their_time() -> None:
    make_group("wave0", make_agent("w-0"))
    make_group("wave1", make_agent("w-1"))
    execution = dispatch(replace(rolled_out(0 * MINUTE, 10 * MINUTE), wait=HOUR), now=NOW)
    rows = Wave.objects.values_list("number", "group_slug", "due_at", "deadline_at", "state")
    assert list(rows) == [
        (0, "wave0", NOW, NOW + HOUR, WaveState.RELEASED),
        (1, "wave1", NOW + 10 * MINUTE, NOW + 70 * MINUTE, WaveState.WAITING),
    ]
    states = dict(Command.objects.values_list("agent__name", "state"))
    assert states == {"w-0": CommandState.QUEUED, "w-1": CommandState.STAGED}
    late = Command.objects.get(wave=1)
    assert (late.start_after, late.deadline_at) == (NOW + 10 * MINUTE, NOW + 70 * MINUTE)
    task = Task.objects.get(kind="fleet.wave")
    assert (task.key, task.due_at) == (f"{execution.pk}:1", NOW + 10 * MINUTE)


@pytest.mark.usefixtures("small_chunks")
def test_a_large_rollout_publishes_its_first_wave_when_all_is_written() -> None:
    make_group("wave0", *[make_agent() for _ in range(12)])
    make_group("wave1", *[make_agent() for _ in range(12)])
    execution = dispatch(rolled_out(0 * MINUTE, HOUR), now=NOW)
    while fill_chunk(execution.pk, now=NOW):
        assert not Command.objects.exclude(state=CommandState.STAGED).exists()
    assert Command.objects.filter(wave=0, state=CommandState.QUEUED).count() == 12
    assert Command.objects.filter(wave=1, state=CommandState.STAGED).count() == 12
