"""The tick: who is looked at, what fires, and the reasons that it leaves."""

from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch

import pytest
from pytest_django import DjangoAssertNumQueries

from fleet.flow.dispatch import dispatch
from fleet.flow.freeze import read_freeze
from fleet.flow.plans import DispatchPlan
from fleet.flow.tick import TickReport, look_at, tick
from fleet.models import (
    Agent,
    AgentPresence,
    Command,
    Evaluation,
    Execution,
    Freeze,
    Occurrence,
    Origin,
    Schedule,
    TickMark,
)
from fleet.rules.command_states import CommandState
from fleet.rules.execution_states import ExecutionState
from fleet.rules.targets import Target
from tests.fleet.make import (
    MINUTE,
    NOW,
    make_agent,
    make_group,
    make_job,
    make_schedule,
    make_schedule_agent,
    revise,
)

pytestmark = pytest.mark.django_db
HOUR = 60 * MINUTE


def reason_of(schedule: Schedule) -> str:
    return Evaluation.objects.get(schedule=schedule, until=None).reason


def fired(schedule: Schedule) -> list[str]:
    """The names of the PCs that have a command of the schedule, in the order of names."""
    commands = Command.objects.filter(schedule_id=schedule.pk)
    return sorted(commands.values_list("agent__name", flat=True))


def heard(now: datetime) -> None:
    AgentPresence.objects.update(last_seen_at=now)


def test_due_agents_are_sent_the_job_and_are_in_flight_then() -> None:
    schedule, agent = make_schedule(), make_agent("pc-a")
    row = make_schedule_agent(schedule, agent)
    assert tick(now=NOW) == TickReport(looked_at=1, fired=1)
    command = Command.objects.get()
    row.refresh_from_db()
    assert (command.state, command.agent, command.reconciles) == (CommandState.QUEUED, agent, True)
    assert (command.start_after, command.deadline_at) == (NOW, NOW + 2 * MINUTE)
    assert (row.due_at, row.last_dispatched_at) == (None, NOW)
    assert reason_of(schedule) == "dispatched"
    execution = Execution.objects.get()
    assert (execution.state, execution.planned) == (ExecutionState.LIVE, 1)


def test_444_the_next_minute_finds_it_in_flight_and_fires_nothing() -> None:
    schedule = make_schedule()
    make_schedule_agent(schedule, make_agent())
    tick(now=NOW)
    assert tick(now=NOW + MINUTE).fired == 0
    assert reason_of(schedule) == "in flight"
    assert Command.objects.count() == 1


def test_nobody_due_is_nothing_to_do_and_nothing_to_tell() -> None:
    schedule = make_schedule()
    make_schedule_agent(schedule, make_agent(), due_at=NOW + HOUR)
    assert tick(now=NOW).did_nothing
    assert TickMark.objects.get().last_tick_at == NOW


def test_a_silent_agent_gets_no_command() -> None:
    schedule = make_schedule()
    make_schedule_agent(schedule, make_agent(last_seen_at=NOW - 2 * MINUTE - timedelta(seconds=1)))
    assert tick(now=NOW).fired == 0
    assert reason_of(schedule) == "nobody alive"
    assert not Execution.objects.exists()


def test_an_agent_heard_exactly_two_minutes_ago_is_alive() -> None:
    schedule = make_schedule()
    make_schedule_agent(schedule, make_agent(last_seen_at=NOW - 2 * MINUTE))
    assert tick(now=NOW).fired == 1


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"active": {"until": "2026-01-01"}}, "outside active period"),
        ({"constraints": {"skip_dates": ["2026-12-01"]}}, "skip date"),
        ({"constraints": {"window": "22:00-05:00"}}, "outside window"),
        ({"target": {}}, "no target"),
    ],
)
def test_16_a_closed_gate_leaves_its_reason_and_no_command(
    keys: dict[str, Any], reason: str
) -> None:
    schedule = make_schedule(tz="utc", **keys)
    make_schedule_agent(schedule, make_agent())
    tick(now=NOW)
    assert reason_of(schedule) == reason
    assert not Command.objects.exists()


def test_16_a_window_that_opens_lets_the_waiting_go() -> None:
    schedule = make_schedule(tz="utc", constraints={"window": "22:00-05:00"})
    make_schedule_agent(schedule, make_agent())
    tick(now=NOW)
    schedule.refresh_from_db()
    opens = NOW + 10 * HOUR
    assert (schedule.look_at, schedule.held) == (opens, True)
    heard(opens)
    assert tick(now=opens - MINUTE).looked_at == 0
    assert tick(now=opens).fired == 1
    assert Command.objects.get().deadline_at <= opens + 7 * HOUR


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"revoked_at": NOW}, "job revoked"),
        ({"current": None}, "not approved"),
        ({"deleted_at": NOW}, "job missing"),
    ],
)
def test_16_a_job_that_may_not_run_is_not_sent(change: dict[str, object], reason: str) -> None:
    job = make_job()
    schedule = make_schedule(job=job)
    make_schedule_agent(schedule, make_agent())
    type(job).everything.filter(pk=job.pk).update(**change)
    tick(now=NOW)
    assert reason_of(schedule) == reason
    assert not Command.objects.exists()


def test_a_target_that_is_being_computed_waits() -> None:
    schedule = make_schedule()
    make_schedule_agent(schedule, make_agent())
    Schedule.objects.update(targets_dirty_at=NOW, look_at=NOW)
    tick(now=NOW)
    assert reason_of(schedule) == "computing target"


def test_11_the_cap_is_filled_and_not_exceeded() -> None:
    schedule = make_schedule(constraints={"max_concurrent": 2})
    for number in range(5):
        make_schedule_agent(schedule, make_agent(f"cap-{number}"))
    tick(now=NOW)
    assert fired(schedule) == ["cap-0", "cap-1"]
    assert {command.max_concurrent for command in Command.objects.all()} == {2}
    assert tick(now=NOW + MINUTE).fired == 0
    assert reason_of(schedule) == "no free slot"


def test_two_schedules_of_one_job_never_have_two_commands_open_on_one_agent() -> None:
    job, agent = make_job(), make_agent()
    for schedule in (make_schedule(job=job), make_schedule(job=job)):
        make_schedule_agent(schedule, agent)
    assert tick(now=NOW).fired == 1
    assert Command.objects.count() == 1


def test_an_agent_that_runs_the_job_by_hand_is_not_sent_it_as_well() -> None:
    job, busy, free = make_job(), make_agent("busy"), make_agent("free")
    assert job.current is not None
    by_hand = DispatchPlan(job.current, Origin.MANUAL, "alice", Target(pcs=("busy",)))
    dispatch(by_hand, now=NOW)
    schedule = make_schedule(job=job)
    for agent in (busy, free):
        make_schedule_agent(schedule, agent)
    tick(now=NOW)
    assert fired(schedule) == ["free"]
    assert Command.objects.filter(agent=busy).count() == 1


def test_one_broken_schedule_does_not_stop_the_others() -> None:
    broken, good = make_schedule(), make_schedule()
    for schedule in (broken, good):
        make_schedule_agent(schedule, make_agent())
    Schedule.objects.filter(pk=broken.pk).update(manifest={"id": 1}, fingerprint="broken")
    assert tick(now=NOW).fired == 1
    assert reason_of(broken) == "error"
    assert reason_of(good) == "dispatched"
    broken.refresh_from_db()
    assert (broken.held, broken.look_at) == (True, NOW + 5 * MINUTE)


def test_74_named_pcs_that_are_off_are_waited_for_and_unknown_ones_listed() -> None:
    schedule = make_schedule(target={"pcs": ["pc-here", "PC-Off", "Zed"]})
    make_schedule_agent(schedule, make_agent("pc-here"))
    make_schedule_agent(schedule, make_agent("pc-off", last_seen_at=NOW - HOUR))
    tick(now=NOW)
    assert fired(schedule) == ["pc-here"]
    standing = Evaluation.objects.get(until=None)
    assert standing.detail == "waiting for pc-off; unknown: Zed"


def test_a_disabled_schedule_says_so_once_and_is_left_alone() -> None:
    schedule = make_schedule(enabled=False)
    make_schedule_agent(schedule, make_agent())
    assert tick(now=NOW) == TickReport(looked_at=1)
    assert reason_of(schedule) == "disabled"
    assert tick(now=NOW + MINUTE).did_nothing


def test_a_disabled_schedule_that_cannot_be_read_is_disabled() -> None:
    schedule = make_schedule(enabled=False)
    Schedule.objects.update(manifest={"id": 1}, fingerprint="broken")
    tick(now=NOW)
    assert reason_of(schedule) == "disabled"
    assert tick(now=NOW + MINUTE).did_nothing


def test_a_schedule_that_pcs_fire_themselves_is_left_to_them() -> None:
    schedule = make_schedule(runs_on="agent")
    Schedule.objects.update(runs_on_agent=True, look_at=NOW)
    tick(now=NOW)
    assert reason_of(schedule) == "runs on agent"
    assert tick(now=NOW + MINUTE).did_nothing


def test_16_a_dispatch_that_came_to_nothing_leaves_no_marks() -> None:
    schedule = make_schedule()
    row = make_schedule_agent(schedule, make_agent())
    with patch("fleet.flow.dispatch.fill_at_once", return_value=0):
        tick(now=NOW)
    row.refresh_from_db()
    assert (row.due_at, row.last_dispatched_at) == (NOW, None)
    assert not Execution.objects.exists()


def test_16_an_edit_of_the_job_applies_from_the_next_fire() -> None:
    job = make_job()
    schedule = make_schedule(job=job)
    make_schedule_agent(schedule, make_agent())
    newer = revise(job, version="2")
    tick(now=NOW)
    assert Command.objects.get().revision == newer


def test_the_last_approved_revision_fires_while_a_newer_one_waits() -> None:
    job = make_job()
    approved = job.current
    revise(job, version="2", current=False, require_approval=True)
    make_schedule_agent(make_schedule(job=job), make_agent())
    tick(now=NOW)
    assert Command.objects.get().revision == approved


# --------------------------------------------------------------------------------- freeze


def test_96_while_frozen_nothing_is_dispatched_and_every_schedule_says_so() -> None:
    due, idle = make_schedule(), make_schedule()
    make_schedule_agent(due, make_agent())
    make_schedule_agent(idle, make_agent(), due_at=NOW + HOUR)
    Freeze.objects.update(is_set=True, reason="year end")
    assert tick(now=NOW) == TickReport(held=2)
    assert not Command.objects.exists()
    assert [reason_of(due), reason_of(idle)] == ["frozen", "frozen"]
    assert Evaluation.objects.filter(detail="frozen: year end").count() == 2
    assert tick(now=NOW + MINUTE).did_nothing


def test_the_first_tick_after_a_thaw_looks_at_everything() -> None:
    due, idle = make_schedule(), make_schedule()
    make_schedule_agent(due, make_agent())
    make_schedule_agent(idle, make_agent(), due_at=NOW + HOUR)
    Freeze.objects.update(is_set=True)
    tick(now=NOW)
    Freeze.objects.update(is_set=False)
    assert tick(now=NOW + MINUTE) == TickReport(looked_at=2, fired=1)
    assert [reason_of(due), reason_of(idle)] == ["dispatched", "all done"]


def test_f16_a_lost_freeze_row_stops_everything() -> None:
    schedule = make_schedule()
    make_schedule_agent(schedule, make_agent())
    Freeze.objects.all().delete()
    assert read_freeze(NOW).frozen
    tick(now=NOW)
    assert not Command.objects.exists()
    assert reason_of(schedule) == "frozen"


# ------------------------------------------------------------------------------ per_target


def target_schedule(**keys: Any) -> tuple[Schedule, list[Agent]]:
    schedule = make_schedule(when={"per_target": {"every": "24h"}}, **keys)
    agents = [make_agent(name) for name in ("t-1", "t-2", "t-3")]
    for agent in agents:
        make_schedule_agent(schedule, agent, due_at=None)
    Schedule.objects.update(look_at=NOW)
    return schedule, agents


def test_per_target_sends_to_every_live_member_at_once() -> None:
    schedule, agents = target_schedule()
    AgentPresence.objects.filter(agent=agents[2]).update(last_seen_at=NOW - HOUR)
    tick(now=NOW)
    schedule.refresh_from_db()
    assert fired(schedule) == ["t-1", "t-2"]
    assert schedule.last_dispatched_at == NOW


def test_per_target_under_a_cap_sends_the_cap_s_worth() -> None:
    schedule, _ = target_schedule(constraints={"max_concurrent": 1})
    tick(now=NOW)
    assert fired(schedule) == ["t-1"]
    assert tick(now=NOW + MINUTE).fired == 0
    assert reason_of(schedule) == "in flight"


def test_per_target_follows_its_waves() -> None:
    schedule = make_schedule(
        when={"per_target": "once"},
        rollout={"waves": [{"group": "canary", "delay": "0s"}, {"group": "rest", "delay": "1h"}]},
        target={},
    )
    first, second = make_agent("w-1"), make_agent("w-2")
    make_group("canary", first)
    make_group("rest", first, second)
    for agent in (first, second):
        make_schedule_agent(schedule, agent, due_at=None)
    Schedule.objects.update(look_at=NOW)
    tick(now=NOW)
    states = dict(Command.objects.values_list("agent__name", "state"))
    assert states == {"w-1": CommandState.QUEUED, "w-2": CommandState.STAGED}


# ------------------------------------------------------------------------------- calendars


def calendar(**keys: Any) -> Schedule:
    schedule = make_schedule(**({"when": {"calendar": {"at": "12:00"}}, "tz": "utc"} | keys))
    Schedule.objects.filter(pk=schedule.pk).update(next_fire_at=NOW, settled_until=NOW - HOUR)
    return schedule


def test_a_calendar_fires_its_whole_target_alive_or_not_and_once() -> None:
    schedule = calendar()
    make_agent("c-1")
    make_agent("c-2", last_seen_at=None)
    assert tick(now=NOW).fired == 1
    occurrence = Occurrence.objects.get()
    schedule.refresh_from_db()
    assert fired(schedule) == ["c-1", "c-2"]
    assert (occurrence.nominal_at, occurrence.state) == (NOW, "fired")
    assert occurrence.execution_id == Execution.objects.get().pk
    assert schedule.next_fire_at == NOW + 24 * HOUR
    assert Command.objects.first().deadline_at == NOW + timedelta(days=7)  # type: ignore[union-attr]  # there are two
    assert tick(now=NOW + MINUTE).fired == 0
    assert reason_of(schedule) == "all done"


def test_29_a_time_that_has_fired_never_fires_again() -> None:
    schedule = calendar()
    make_agent()
    tick(now=NOW)
    Schedule.objects.filter(pk=schedule.pk).update(next_fire_at=NOW)  # a clock that jumped back
    assert look_at(schedule.pk, now=NOW) == 0
    assert Execution.objects.count() == Occurrence.objects.count() == 1
    schedule.refresh_from_db()
    assert schedule.next_fire_at == NOW + 24 * HOUR


def test_a_time_that_meets_a_closed_gate_is_skipped_and_not_caught_up() -> None:
    schedule = calendar(constraints={"window": "22:00-05:00"})
    make_agent()
    tick(now=NOW)
    occurrence = Occurrence.objects.get()
    schedule.refresh_from_db()
    assert (occurrence.state, occurrence.reason) == ("skipped", "outside window")
    assert schedule.next_fire_at == NOW + 24 * HOUR
    assert not Execution.objects.exists()


def test_a_time_during_a_freeze_is_skipped_for_the_freeze() -> None:
    calendar()
    make_agent()
    Freeze.objects.update(is_set=True)
    tick(now=NOW)
    assert Occurrence.objects.get().reason == "frozen"


def test_19_up_to_ninety_seconds_late_is_on_time() -> None:
    calendar(when={"calendar": {"cron": "* * * * *"}})
    make_agent()
    assert tick(now=NOW + timedelta(seconds=90)).fired >= 1
    first = Occurrence.objects.order_by("nominal_at").first()
    assert first is not None
    assert (first.state, first.late_s) == ("fired", 90)


@pytest.mark.parametrize(
    ("misfire", "states", "fires"),
    [
        ("skip", [("missed", 1)], 0),
        ("once", [("fired", 1)], 1),
        ("all", [("fired", 0), ("fired", 0)], 2),
    ],
)
def test_18_times_that_were_missed_follow_the_policy(
    misfire: str, states: list[tuple[str, int]], fires: int
) -> None:
    schedule = calendar(misfire=misfire)
    make_agent()
    late = NOW + 24 * HOUR + 3 * HOUR  # two days' noons, both too late
    assert tick(now=late).fired == fires
    found = Occurrence.objects.order_by("nominal_at").values_list("state", "missed_before")
    assert list(found) == states
    schedule.refresh_from_db()
    assert schedule.next_fire_at == NOW + 48 * HOUR


def test_18_catching_up_all_stops_at_a_hundred_and_counts_the_rest() -> None:
    schedule = calendar(when={"calendar": {"cron": "* * * * *"}}, misfire="all")
    make_agent()
    late = NOW + 4 * 24 * HOUR
    assert tick(now=late).fired == 100
    oldest = Occurrence.objects.order_by("nominal_at").first()
    assert oldest is not None
    assert oldest.missed_before == 900  # counting stops at a thousand
    schedule.refresh_from_db()
    assert schedule.next_fire_at == late + MINUTE


def test_a_one_shot_never_fires_again() -> None:
    schedule = calendar(when={"calendar": {"at": "2026-12-01 12:00"}})
    make_agent()
    tick(now=NOW)
    schedule.refresh_from_db()
    assert schedule.next_fire_at is None
    tick(now=NOW + MINUTE)
    standing = Evaluation.objects.get(schedule=schedule, until=None)
    assert (standing.reason, standing.detail) == ("all done", "it never fires again")


# ---------------------------------------------------------------------------------- parking


def test_silent_agents_are_parked_only_after_ticks_have_been_steady() -> None:
    schedule = make_schedule()
    make_agent()
    row = make_schedule_agent(schedule, make_agent(last_seen_at=None))
    for minute in range(8):
        now = NOW + minute * MINUTE
        AgentPresence.objects.exclude(last_seen_at=None).update(last_seen_at=now)
        tick(now=now)
        row.refresh_from_db()
        is_parked = row.parked_due_at is not None
        assert is_parked is (minute >= 6)  # five minutes after the second tick
    assert (row.due_at, row.parked_due_at) == (None, NOW)


def test_nobody_is_parked_while_the_server_itself_was_deaf() -> None:
    schedule = make_schedule()
    row = make_schedule_agent(schedule, make_agent(last_seen_at=NOW - HOUR))
    for minute in range(10):
        tick(now=NOW + minute * MINUTE)
    row.refresh_from_db()
    assert row.parked_due_at is None


# -------------------------------------------------------------------------------- the costs


def test_an_idle_tick_costs_the_same_queries_for_one_schedule_and_for_fifty(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    agents = [make_agent() for _ in range(5)]
    tick(now=NOW)
    for number in range(1, 51):
        schedule = make_schedule()
        for agent in agents:
            make_schedule_agent(schedule, agent, due_at=NOW + HOUR)
        if number in {1, 50}:
            with django_assert_num_queries(5):
                assert tick(now=NOW + timedelta(seconds=number)).did_nothing


def test_a_tick_that_fires_costs_the_same_queries_for_one_agent_and_for_two_hundred(
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    for agents in (1, 200):
        schedule = make_schedule()
        for _ in range(agents):
            make_schedule_agent(schedule, make_agent())
        with django_assert_max_num_queries(34):
            assert tick(now=NOW).fired == 1
