"""A freeze row that holds anything: every gate is shut, everybody is told, a valid one repairs it.

The row loses its rules and, where the database has them, its types, as after a bad restore; the
test's own transaction takes that back.
"""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.urls import reverse

from fleet.flow.deliver import deliver
from fleet.flow.dispatch import dispatch
from fleet.flow.freeze import read_freeze
from fleet.flow.plans import DispatchPlan
from fleet.flow.tick import tick
from fleet.flow.waves import release_wave
from fleet.models import Command, Execution, Freeze, Origin, Wave, WaveState
from fleet.operations.freezing import clear_freeze, freeze_document, set_freeze
from fleet.operations.running import run_job
from fleet.rules.command_states import CommandState
from fleet.rules.refusals import Conflict, Frozen
from fleet.rules.targets import Rollout, Target
from fleet.rules.targets import Wave as PlannedWave
from scheduler.models import AuditEntry
from scheduler.public import Actor
from tests.fleet.admin.conftest import Visit, visit  # noqa: F401  # fixtures
from tests.fleet.admin.reading import Page
from tests.fleet.agent_api.asking import Pc
from tests.fleet.make import (
    NOW,
    make_agent,
    make_command,
    make_group,
    make_job,
    make_schedule,
    make_schedule_agent,
)
from tests.fleet.operator_api.callers import Caller, make_user, ok

ALICE = Actor("user", "alice")
LOOSE = {
    "sqlite": [
        "DROP TABLE fleet_freeze",
        (
            "CREATE TABLE fleet_freeze (id integer, is_set bool, starts varchar(64),"
            " ends varchar(64), tz varchar(100), reason text, set_by varchar(200), set_at datetime)"
        ),
        "INSERT INTO fleet_freeze VALUES (1, 0, '', '', 'local', '', '', NULL)",
    ],
    "postgresql": [
        "ALTER TABLE fleet_freeze DROP CONSTRAINT one_freeze_for_the_fleet",
        *(
            f"ALTER TABLE fleet_freeze ALTER COLUMN {name} DROP NOT NULL"
            for name in ("is_set", "starts", "ends", "tz", "reason", "set_by")
        ),
    ],
}


def typed(column: str, kind: str, value: str) -> str:
    return f"ALTER TABLE fleet_freeze ALTER COLUMN {column} TYPE {kind} USING {value}"


# What was done to the row that says "no freeze", by database. Of one that is not set nobody reads
# the bounds, so those are spoilt in one that is.
SET = "UPDATE fleet_freeze SET is_set = true"
CORRUPTIONS: dict[str, dict[str, list[str]]] = {
    "no row": {"any": ["DELETE FROM fleet_freeze"]},
    "another row alone": {"any": ["UPDATE fleet_freeze SET id = 2"]},
    "an extra row": {
        "any": [
            (
                "INSERT INTO fleet_freeze (id, is_set, starts, ends, tz, reason, set_by)"
                " VALUES (2, false, '', '', 'local', '', '')"
            )
        ]
    },
    "the flag is null": {"any": ["UPDATE fleet_freeze SET is_set = NULL"]},
    "the flag is a letter": {
        "sqlite": ["UPDATE fleet_freeze SET is_set = 'f'"],
        "postgresql": [typed("is_set", "text", "'f'")],
    },
    "the flag is a word": {
        "sqlite": ["UPDATE fleet_freeze SET is_set = 'maybe'"],
        "postgresql": [typed("is_set", "text", "'maybe'")],
    },
    "the flag is another number": {
        "sqlite": ["UPDATE fleet_freeze SET is_set = 2"],
        "postgresql": [typed("is_set", "integer", "2")],
    },
    "the flag is bytes": {
        "sqlite": ["UPDATE fleet_freeze SET is_set = x'3f'"],
        "postgresql": [typed("is_set", "bytea", "'\\x3f'::bytea")],
    },
    "the zone is null": {"any": [SET, "UPDATE fleet_freeze SET tz = NULL"]},
    "the zone is nowhere": {"any": [SET, "UPDATE fleet_freeze SET tz = 'Mars/Olympus'"]},
    "a bound is json": {"any": [SET, "UPDATE fleet_freeze SET ends = '{\"until\": '"]},
    "a bound is a number": {
        "sqlite": [SET, "UPDATE fleet_freeze SET ends = x'31'"],
        "postgresql": [SET, typed("ends", "integer", "1")],
    },
    "it ends before it starts": {
        "any": [SET, "UPDATE fleet_freeze SET starts = '2026-11-02', ends = '2026-11-01'"]
    },
}
# Elsewhere the columns themselves have other types, which no operator can repair.
REPAIRABLE = [
    name for name, way in CORRUPTIONS.items() if "any" in way or connection.vendor == "sqlite"
]


def corrupt(name: str) -> None:
    """Do to the row what the table says."""
    way = CORRUPTIONS[name]
    with connection.cursor() as cursor:
        for statement in LOOSE[connection.vendor] + way.get("any", way.get(connection.vendor, [])):
            cursor.execute(statement)


every_corruption = pytest.mark.parametrize("name", CORRUPTIONS)


@every_corruption
@pytest.mark.django_db
def test_f16_the_tick_dispatches_nothing_and_says_why(name: str) -> None:
    schedule = make_schedule()
    make_schedule_agent(schedule, make_agent())
    corrupt(name)

    tick(now=NOW)

    assert Command.objects.count() == 0
    (verdict,) = schedule.evaluations.filter(until=None)
    assert verdict.reason == "frozen"
    assert verdict.detail.startswith("frozen: unreadable (")


def rollout() -> Execution:
    """Two waves that are due, written while nothing was wrong."""
    for number in range(2):
        make_group(f"wave{number}", make_agent())
    job = make_job()
    assert job.current is not None
    waves = tuple(PlannedWave(f"wave{number}", NOW - NOW) for number in range(2))
    plan = DispatchPlan(job.current, Origin.MANUAL, "alice", Target(), rollout=Rollout(waves, None))
    Freeze.objects.update(is_set=True)
    execution = dispatch(plan, now=NOW)
    Freeze.objects.update(is_set=False)
    return execution


@every_corruption
@pytest.mark.django_db
def test_f16_no_wave_is_published_and_no_run_by_hand_begins(name: str) -> None:
    execution, job = rollout(), make_job()
    corrupt(name)

    released = [release_wave(execution.pk, number, now=NOW) for number in range(2)]
    with pytest.raises(Frozen, match="unreadable"):
        run_job(job, target={"all": True}, actor=ALICE, now=NOW)

    assert released == [False, False]
    assert set(Wave.objects.values_list("state", flat=True)) == {WaveState.WAITING}
    assert set(Command.objects.values_list("state", flat=True)) == {CommandState.STAGED}
    assert Execution.objects.count() == 1


@every_corruption
@pytest.mark.django_db
def test_f16_nothing_is_handed_out_and_the_agent_is_told(name: str) -> None:
    pc, idle = Pc(), Pc()
    make_command(pc.agent, deadline_at=NOW.replace(year=2100))
    corrupt(name)

    told = [pc.exchanges(), idle.exchanges()]

    assert [one["commands"] for one in told] == [[], []]
    assert [(one["freeze"]["frozen"], one["freeze"]["unreadable"]) for one in told] == [
        (True, True)
    ] * 2
    assert Command.objects.get().state == CommandState.QUEUED


@every_corruption
@pytest.mark.django_db
def test_f16_admin_and_api_say_frozen_unreadable(name: str, visit: Visit) -> None:  # noqa: F811
    corrupt(name)

    html = visit("root").get(reverse("admin:fleet_freeze_changelist")).content.decode()
    told = ok(Caller(make_user("operator")).get("freeze/"))

    assert len(list(Page(html).all("div", class_="freeze-unreadable"))) == 1
    assert (told["frozen"], told["state"][:20]) == (True, "frozen: unreadable (")


@pytest.mark.parametrize("name", REPAIRABLE)
@pytest.mark.django_db
def test_f16_only_a_valid_freeze_repairs_it_and_that_is_audited(name: str) -> None:
    corrupt(name)

    with pytest.raises(Conflict, match="set a valid one first"):
        clear_freeze(actor=ALICE, now=NOW)
    assert read_freeze(NOW).unreadable is not None
    set_freeze({"reason": "repaired"}, actor=ALICE, now=NOW)

    assert read_freeze(NOW).words == "frozen: repaired"
    assert freeze_document() == {"freeze": {"reason": "repaired"}}
    assert AuditEntry.objects.get().action == "freeze"
    clear_freeze(actor=ALICE, now=NOW)
    assert not read_freeze(NOW).frozen


# --- the database refuses to read it -------------------------------------------------------------


def refusing(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
    """Fail every statement that names the freeze, as a lost table or a lost right does."""
    if "fleet_freeze" in sql:
        raise OperationalError("permission denied for table fleet_freeze")
    return execute(sql, params, many, context)


@pytest.mark.django_db(transaction=True)
def test_f16_what_the_database_refuses_to_tell_lets_nothing_pass() -> None:
    schedule = make_schedule()
    make_schedule_agent(schedule, make_agent())
    execution, pc = rollout(), Pc()
    waiting = make_command(pc.agent, deadline_at=NOW.replace(year=2100))

    with connection.execute_wrapper(refusing):
        for pass_through in (
            lambda: tick(now=NOW),
            lambda: release_wave(execution.pk, 0, now=NOW),
            lambda: deliver(pc.agent.pk, in_hand=frozenset(), most_bytes=10**6, now=NOW),
        ):
            with pytest.raises(OperationalError):
                pass_through()
        answer = pc.sends()

    assert answer.status_code == 503
    assert Execution.objects.count() == 2
    assert not Command.objects.exclude(state=CommandState.STAGED).exclude(pk=waiting.pk).exists()
    assert Command.objects.get(pk=waiting.pk).state == CommandState.QUEUED


@pytest.mark.django_db(transaction=True)
def test_f16_a_freeze_that_the_database_refuses_is_shown_as_unreadable(
    visit: Visit,  # noqa: F811
) -> None:
    root, operator = visit("root"), Caller(make_user("operator"))

    with connection.execute_wrapper(refusing):
        pages = [
            root.get(reverse(f"admin:{name}")) for name in ("index", "fleet_freeze_changelist")
        ]
        told = ok(operator.get("freeze/"))

    for page in pages:
        assert page.status_code == 200
        (banner,) = Page(page.content.decode()).all("div", class_="freeze-unreadable")
        assert "its administrator can tell why" in " ".join(banner.text.split())
    assert (told["frozen"], told["freeze"]) == (True, "unreadable")
    assert told["state"].startswith("frozen: unreadable (the database refuses it")
