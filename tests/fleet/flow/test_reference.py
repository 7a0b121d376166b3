"""The typical manifests fire as a plain program, written apart from the flow, says they should."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from fleet.flow.collect import collect
from fleet.flow.deliver import deliver
from fleet.flow.targets import compute_targets
from fleet.flow.tick import tick
from fleet.flow.waves import release_due_waves
from fleet.models import AgentPresence, Command, Schedule
from fleet.operations.applying import apply_documents
from fleet.operations.freezing import set_freeze
from fleet.rules.apply_plan import Given
from fleet.rules.command_states import CommandState
from fleet.rules.documents import read_yaml
from scheduler.public import Actor
from tests.fleet.asked import requests_noted
from tests.fleet.flow.reporting import result
from tests.fleet.make import MINUTE, make_agent, make_group

pytestmark = pytest.mark.django_db
TYPICAL = Path(__file__).parents[2] / "data" / "typical"
BUDAPEST = ZoneInfo("Europe/Budapest")
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
ALL = ["a", "b", "c", "d"]
GROUPS = {"office": ["a", "b"], "canary": ["c"], "wave1": ["a"], "wave2": ["b", "d"]}
Fires = set[tuple[datetime, str, str]]  # when handed out, schedule, PC
Successes = dict[tuple[str, str], datetime]  # the last one of (schedule, PC)


def wanted(start: datetime, minutes: int, frozen: tuple[datetime, datetime]) -> Fires:
    """What is to be handed out: minute by minute, each run succeeds a minute later."""
    fires: Fires = set()
    success: Successes = {}
    waiting: list[tuple[datetime, str]] = []
    for minute in range(minutes):
        now = start + minute * MINUTE
        ran = [(schedule, pc) for at, schedule, pc in fires if at == now - MINUTE]
        success |= dict.fromkeys(ran, now)
        if not frozen[0] <= now < frozen[1]:
            names = wanted_by_calendar(now, waiting) + wanted_by_success(now, success)
            fires |= {(now, schedule, pc) for schedule, pc in names}
    return fires


def wanted_by_calendar(now: datetime, waiting: list[tuple[datetime, str]]) -> list[tuple[str, str]]:
    """(schedule, PC) of the calendars; `waiting` is when each PC of a wave is due."""
    local = now.astimezone(BUDAPEST)
    clock = local.strftime("%H:%M")
    names: list[tuple[str, str]] = []
    if clock == "09:00" and local.weekday() < 5:
        names += [("greeting-workdays", pc) for pc in ALL]
    if clock == "22:00" and local.weekday() == 1 and 8 <= local.day <= 14:
        for group, delay in (("canary", 0 * HOUR), ("wave1", HOUR), ("wave2", DAY)):
            waiting += [(now + delay, pc) for pc in GROUPS[group]]
    for due, pc in [one for one in waiting if one[0] <= now]:
        waiting.remove((due, pc))
        if now <= due + 4 * HOUR:
            names.append(("patch-tuesday-waves", pc))
    return names


def wanted_by_success(now: datetime, success: Successes) -> list[tuple[str, str]]:
    """(schedule, PC) of those schedules that ask when the job last succeeded."""

    def is_due(schedule: str, pc: str, every: timedelta) -> bool:
        last = success.get((schedule, pc))
        return last is None or now >= last + every

    office, clock = GROUPS["office"], now.astimezone(BUDAPEST).strftime("%H:%M")
    names = [("kitting-once", pc) for pc in ALL if ("kitting-once", pc) not in success]
    names += [("inventory-6h", pc) for pc in ALL if is_due("inventory-6h", pc, 6 * HOUR)]
    if clock >= "22:00" or clock < "05:00":
        nightly = "overnight-patch-daily"
        names += [(nightly, pc) for pc in office if is_due(nightly, pc, DAY)]
    if all(is_due("licence-checkin-daily", pc, DAY) for pc in office):
        names += [("licence-checkin-daily", pc) for pc in office]
    return names


def handed_out(start: datetime, minutes: int, frozen: tuple[datetime, datetime]) -> Fires:
    """What is handed out: the real tick, hand-out and results, on a clock of their own."""
    agents = {name: make_agent(name, last_seen_at=start) for name in ALL}
    for group, names in GROUPS.items():
        make_group(group, *[agents[name] for name in names])
    alice = Actor("user", "alice", user_id=None)
    with requests_noted():
        for path in sorted(TYPICAL.glob("*.yaml")):
            documents = [Given(path.name, one) for one in read_yaml(path.read_text())]
            assert apply_documents(documents, actor=alice, now=start - MINUTE).bad == []
        bounds = {"from": frozen[0].isoformat(), "until": frozen[1].isoformat()}
        set_freeze(bounds, actor=alice, now=start - MINUTE)
        for key in Schedule.objects.values_list("pk", flat=True):
            compute_targets(key, now=start - MINUTE)
        running: list[tuple[int, UUID]] = []
        for minute in range(minutes):
            running = _one_minute(start + minute * MINUTE, running)
    slugs = dict(Schedule.objects.values_list("pk", "slug"))
    rows = Command.objects.exclude(handed_out_at=None)
    told = rows.values_list("handed_out_at", "schedule_id", "agent__name")
    return {(when, slugs[schedule or 0], name) for when, schedule, name in told if when}


def _one_minute(now: datetime, running: list[tuple[int, UUID]]) -> list[tuple[int, UUID]]:
    """Return (agent, command) of what runs at the end of the minute."""
    AgentPresence.objects.update(last_seen_at=now)
    told = {"started_at": now.isoformat(), "finished_at": now.isoformat()}
    for agent, command in running:
        collect(agent, [result(command, **told)], now=now)
    release_due_waves(now=now)
    tick(now=now)
    queued = Command.objects.filter(state=CommandState.QUEUED)
    for agent in set(queued.values_list("agent_id", flat=True)):
        deliver(agent, in_hand=frozenset(), most_bytes=3_000_000, now=now)
    gone = Command.objects.filter(state=CommandState.HANDED_OUT)
    return list(gone.values_list("agent_id", "pk"))


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("start", "minutes", "frozen"),
    [
        # The night in which the clocks go back, frozen for an hour as the window opens.
        ("2026-10-24T19:30", 540, ("2026-10-24T19:45", "2026-10-24T20:45")),
        # The first working day after it.
        ("2026-10-26T07:45", 30, ("2026-10-26T09:00", "2026-10-26T10:00")),
        # A patch Tuesday; the freeze begins between the waves and holds the second one.
        ("2026-11-10T20:30", 130, ("2026-11-10T21:30", "2026-11-10T22:20")),
    ],
    ids=["clocks go back", "workday", "patch tuesday"],
)
def test_typical_schedules_fire_as_the_reference_says(
    start: str, minutes: int, frozen: tuple[str, str]
) -> None:
    ice = (at(frozen[0]), at(frozen[1]))
    expected = wanted(at(start), minutes, ice)
    assert expected
    assert handed_out(at(start), minutes, ice) == expected
