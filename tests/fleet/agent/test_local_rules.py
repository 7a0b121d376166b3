"""Whether a schedule fires on this PC: the server's gates in their order, and its own calendar."""

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from fleet.agent.bundle import LocalSchedule
from fleet.agent.claims import Claim
from fleet.agent.gate import UNREADABLE, Freeze
from fleet.agent.local_rules import Fire, Rest, judge, ttl_of
from fleet.rules.cooldown import Success
from fleet.rules.firing import Reason
from tests.fleet.agent.locally import at, local_schedule
from tests.fleet.agent.make import AGENT_ID, NOW

UTC_ZONE = ZoneInfo("UTC")
DAILY = {"calendar": {"at": "09:00"}}


def ask(
    schedule: LocalSchedule,
    now: datetime = NOW,
    claim: Claim | None = None,
    *,
    freeze: Freeze | None = None,
    is_alive: bool = False,
    local: ZoneInfo = UTC_ZONE,
) -> Fire | Rest:
    return judge(
        schedule,
        claim or Claim(looked_at=NOW - timedelta(hours=1)),
        now=now,
        local=local,
        freeze=freeze or Freeze(),
        is_alive=is_alive,
        agent_id=AGENT_ID,
    )


def why(found: Fire | Rest) -> Reason:
    assert isinstance(found, Rest)
    return found.reason


def fired(found: Fire | Rest) -> Fire:
    assert isinstance(found, Fire)
    return found


def test_what_has_never_succeeded_fires_now() -> None:
    found = fired(ask(local_schedule()))
    assert (found.nominal, found.start_after) == (NOW, NOW)


@pytest.mark.parametrize(("ago_s", "fires"), [(1800, False), (3599, False), (3600, True)])
def test_a_success_counts_as_long_as_the_schedule_says(ago_s: int, fires: bool) -> None:
    claim = Claim(success=Success(NOW - timedelta(seconds=ago_s), "1.0.0"))
    found = ask(local_schedule(), claim=claim)
    assert isinstance(found, Fire) is fires
    if not fires:
        assert why(found) is Reason.ALL_DONE


def test_once_is_once_for_ever() -> None:
    claim = Claim(success=Success(NOW - timedelta(days=4000), "0.1"))
    assert why(ask(local_schedule(when={"per_pc": "once"}), claim=claim)) is Reason.ALL_DONE


WINDOW: dict[str, Any] = {"constraints": {"window": "22:00-05:00"}}
CLOSED: list[tuple[LocalSchedule, dict[str, Any], Reason]] = [
    (local_schedule(), {"freeze": Freeze(frozen=True)}, Reason.FROZEN),
    (local_schedule(), {"freeze": UNREADABLE}, Reason.FROZEN),
    (local_schedule(enabled=False), {}, Reason.DISABLED),
    (local_schedule(active={"from": "2026-03-03"}), {}, Reason.OUTSIDE_ACTIVE),
    (local_schedule(active={"until": "2026-03-02"}), {}, Reason.OUTSIDE_ACTIVE),
    (local_schedule(constraints={"skip_dates": ["2026-03-02"]}), {}, Reason.SKIP_DATE),
    (local_schedule(**WINDOW), {}, Reason.OUTSIDE_WINDOW),
    (local_schedule(job=False), {}, Reason.JOB_MISSING),
    (local_schedule(is_revoked=True), {}, Reason.JOB_REVOKED),
    (local_schedule(), {"is_alive": True}, Reason.IN_FLIGHT),
    (local_schedule(), {"claim": Claim(token=at(seconds=1))}, Reason.IN_FLIGHT),
    (local_schedule(), {"claim": Claim(fired_at=at(seconds=-119))}, Reason.MUTED),
    (
        local_schedule(),
        {"claim": Claim(failures=3, failed_at=at(minutes=-5))},
        Reason.BACKING_OFF,
    ),
]


@pytest.mark.parametrize(("schedule", "facts", "reason"), CLOSED)
def test_a_closed_gate_is_named(
    schedule: LocalSchedule, facts: dict[str, Any], reason: Reason
) -> None:
    assert why(ask(schedule, **facts)) is reason


@pytest.mark.parametrize("first", range(6))
def test_of_several_closed_gates_the_first_in_order_is_named(first: int) -> None:
    fields: list[dict[str, Any]] = [
        {},
        {"enabled": False},
        {"active": {"from": "2026-03-03"}},
        {"constraints": {"skip_dates": ["2026-03-02"], "window": "22:00-05:00"}},
        {"constraints": {"window": "22:00-05:00"}},
        {"is_revoked": True},
    ]
    order = [
        Reason.FROZEN,
        Reason.DISABLED,
        Reason.OUTSIDE_ACTIVE,
        Reason.SKIP_DATE,
        Reason.OUTSIDE_WINDOW,
        Reason.JOB_REVOKED,
    ]
    merged: dict[str, Any] = {}
    for extra in reversed(fields[first:]):
        merged |= extra
    freeze = Freeze(frozen=first == 0)
    assert why(ask(local_schedule(**merged), freeze=freeze, is_alive=True)) is order[first]


def test_a_target_that_others_belong_to_never_fires_here() -> None:
    schedule = local_schedule()
    other = local_schedule(when={"per_target": {"every": "1h"}}, runs_on="backend")
    assert isinstance(ask(schedule), Fire)
    assert isinstance(ask(other), Rest)


def test_the_window_of_the_pcs_own_zone_counts() -> None:
    schedule = local_schedule(constraints={"window": "17:00-19:00"})
    assert isinstance(ask(schedule, local=ZoneInfo("Asia/Tokyo")), Fire)
    assert isinstance(ask(schedule), Rest)


def test_a_calendar_fires_at_its_time_and_not_before() -> None:
    schedule = local_schedule(when=DAILY)
    looked = Claim(looked_at=at(minutes=-30))
    assert why(ask(schedule, at(seconds=-1), looked)) is Reason.ALL_DONE
    assert fired(ask(schedule, at(), looked)).nominal == at()
    assert fired(ask(schedule, at(seconds=59), looked)).nominal == at()


def test_a_time_that_was_dealt_with_does_not_fire_again() -> None:
    schedule = local_schedule(when=DAILY)
    found = ask(schedule, at(seconds=30), Claim(looked_at=at()))
    assert found == Rest(Reason.ALL_DONE)


def test_a_calendar_does_not_ask_for_successes() -> None:
    claim = Claim(looked_at=at(minutes=-30), success=Success(at(minutes=-1), "1.0.0"))
    assert isinstance(ask(local_schedule(when=DAILY), claim=claim), Fire)


def test_a_time_that_meets_a_closed_gate_is_over() -> None:
    schedule = local_schedule(when=DAILY)
    looked = Claim(looked_at=at(minutes=-30))
    found = ask(schedule, at(), looked, freeze=Freeze(frozen=True))
    assert found == Rest(Reason.FROZEN, looked_at=at())


def test_a_time_that_meets_its_own_run_waits_for_it() -> None:
    schedule = local_schedule(when=DAILY)
    looked = Claim(looked_at=at(minutes=-30))
    assert ask(schedule, at(), looked, is_alive=True) == Rest(Reason.IN_FLIGHT)
    assert fired(ask(schedule, at(minutes=2), looked)).nominal == at()


MISFIRES = [
    ("skip", Rest(Reason.ALL_DONE, looked_at=at(hours=53))),
    ("once", at(hours=48)),
    ("all", at(hours=0)),
]


@pytest.mark.parametrize(("policy", "expected"), MISFIRES)
def test_times_that_were_missed_follow_the_schedules_policy(
    policy: str, expected: Rest | datetime
) -> None:
    schedule = local_schedule(when=DAILY, misfire=policy)
    found = ask(schedule, at(hours=53), Claim(looked_at=at(minutes=-30)))
    assert (found.nominal if isinstance(found, Fire) else found) == expected


def test_a_dated_time_fires_once() -> None:
    schedule = local_schedule(when={"calendar": {"at": "2026-03-02 09:00"}})
    assert fired(ask(schedule, at(), Claim(looked_at=at(minutes=-1)))).nominal == at()
    assert ask(schedule, at(hours=24), Claim(looked_at=at())) == Rest(Reason.ALL_DONE)


def test_jitter_is_this_pcs_own_and_the_same_each_time() -> None:
    schedule = local_schedule(jitter="30m")
    first, again = fired(ask(schedule)), fired(ask(schedule))
    assert first == again
    assert NOW < first.start_after < at(minutes=30)


DEADLINES = [
    # `30s` at t 100 becomes t 130; none is the muting window of a reconcile schedule.
    ({"starting_deadline": "30s"}, timedelta(seconds=30)),
    ({}, timedelta(seconds=120)),
    ({"when": DAILY}, timedelta(days=7)),
    ({"when": DAILY, "starting_deadline": "10m"}, timedelta(minutes=10)),
]


@pytest.mark.parametrize(("fields", "wait"), DEADLINES)
def test_a_fire_has_a_deadline(fields: dict[str, Any], wait: timedelta) -> None:
    found = fired(ask(local_schedule(**fields)))
    assert found.deadline_at - found.start_after == wait


def test_nothing_may_start_after_the_window_closes() -> None:
    schedule = local_schedule(constraints={"window": "08:00-09:01"}, starting_deadline="1h")
    found = fired(ask(schedule))
    assert at(seconds=59) < found.deadline_at < at(minutes=1)


def test_a_fire_takes_jitter_run_retries_and_a_minute_at_most() -> None:
    schedule = local_schedule(jitter="10m", on_failure={"retry": {"max": 2, "backoff": "1m"}})
    expected = timedelta(minutes=10) + timedelta(seconds=30)
    expected += 2 * timedelta(seconds=90) + timedelta(seconds=60)
    assert ttl_of(schedule) == expected
