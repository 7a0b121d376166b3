"""Every statement of what the fleet does fails once: all or nothing, and the next try succeeds."""

import os
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from django.db import OperationalError, connection, transaction

from fleet.flow.collect import Verdicts, collect
from fleet.flow.deliver import deliver
from fleet.flow.dispatch import dispatch
from fleet.flow.filling import fill_chunk
from fleet.flow.plans import DispatchPlan
from fleet.flow.signing import server_signer
from fleet.flow.tick import tick
from fleet.flow.waves import release_wave
from fleet.models import (
    AgentPresence,
    Command,
    Execution,
    Freeze,
    JobRevision,
    Origin,
    Result,
    Schedule,
)
from fleet.operations.agents import revoke_agent, rotate_credential
from fleet.operations.applying import apply_documents
from fleet.operations.approving import approve_execution, approve_revision
from fleet.operations.enrolment import Newcomer, enrol
from fleet.operations.enrolment_tokens import make_enrolment_token
from fleet.operations.firing import fire_schedule
from fleet.operations.freezing import clear_freeze, set_freeze
from fleet.operations.running import run_job
from fleet.operations.stopping import kill_execution, kill_job
from fleet.rules.apply_plan import Given
from fleet.rules.command_states import CommandState as S
from fleet.rules.documents import read_yaml
from fleet.rules.facts import read_facts
from fleet.rules.targets import Rollout, Target
from fleet.rules.targets import Wave as PlannedWave
from scheduler.models import AuditEntry
from scheduler.public import Actor
from tests.fleet.flow.reporting import result
from tests.fleet.make import (
    NOW,
    make_agent,
    make_command,
    make_execution,
    make_group,
    make_job,
    make_schedule,
    make_schedule_agent,
    revise,
)
from tests.scheduler.engine.test_faults import Fault

pytestmark = pytest.mark.django_db
ALICE, BOB = Actor("user", "alice"), Actor("user", "bob")
LATER, MUCH_LATER = NOW + timedelta(minutes=1), NOW + timedelta(minutes=6)
MOST_STATEMENTS = 200
# Each statement in `make prove`, one of three here.
STEP = 1 if os.environ.get("KANADE_PROVE") == "1" else 3
Act = Callable[[], object]
WRITTEN = ("fleet_", "scheduler_task", "scheduler_auditentry")
# Every tick leaves its mark; the signing key is made when it is first needed.
LEFT = {"fleet_tickmark", "fleet_serveridentity"}
SITE = """
id: office
members: []
---
id: inventory
version: "1"
execute: { shell: sh, script: uname -a, timeout: 30s }
---
id: inventory-6h
when: { per_pc: { every: 6h } }
job_id: inventory
target: { groups: [office] }
tz: utc
---
freeze: { reason: holidays }
"""


def everything() -> dict[str, list[Any]]:
    """All rows of the fleet and the scheduler."""
    found = {}
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            if table.startswith(WRITTEN) and table not in LEFT:
                cursor.execute(f"SELECT * FROM {table}")  # the tables' own names
                found[table] = sorted(map(repr, cursor.fetchall()))
    return found


def audited() -> list[str]:
    return list(AuditEntry.objects.order_by("pk").values_list("action", flat=True))


def each_statement_fails(act: Act, *, after: bool, check: Callable[[], object]) -> int:
    """Fail statement 1, 2, … of the act, and try it again; return how many there are.

    After a failure nothing may have changed, or all of it: `check()` tells, and is asked after the
    second try in any case. All is undone before the next statement is failed.
    """
    before = everything()
    for number in range(1, MOST_STATEMENTS, STEP):
        fault = Fault(number, after=after)
        with transaction.atomic():
            with connection.execute_wrapper(fault), suppress(OperationalError):
                act()
            # Only in a test is an error outside of transactions inside of one.
            transaction.set_rollback(False)
            if fault.hit and everything() == before:
                act()
            check()
            transaction.set_rollback(True)
        if not fault.hit:
            return number - 1
    raise AssertionError("it never came to an end")


# --- what people do: it is there with its entry in the audit, or not at all ----------------------


def running_job() -> Act:
    make_agent(), make_agent()
    job = make_job()
    return lambda: run_job(job, target={"all": True}, actor=ALICE, now=NOW, reason="r")


def firing() -> Act:
    schedule = make_schedule(when={"calendar": {"at": "12:00"}}, tz="utc")
    make_agent()
    return lambda: fire_schedule(schedule, actor=ALICE, now=NOW)


def execution_of_two() -> Execution:
    job = make_job()
    execution = make_execution(job, planned=2)
    make_command(execution=execution)
    make_command(execution=execution, state=S.HANDED_OUT, handed_out_at=NOW)
    return execution


def killing_execution() -> Act:
    execution = execution_of_two()
    return lambda: kill_execution(execution, actor=ALICE, now=NOW)


def killing_job() -> Act:
    job = execution_of_two().job
    return lambda: kill_job(job, actor=ALICE, now=NOW)


def freezing() -> Act:
    return lambda: set_freeze({"reason": "r"}, actor=ALICE, now=NOW)


def thawing() -> Act:
    Freeze.objects.update(is_set=True, reason="r")
    return lambda: clear_freeze(actor=ALICE, now=NOW)


def approving_revision() -> Act:
    revision = revise(make_job(), version="2", current=False, require_approval=True)
    return lambda: approve_revision(JobRevision.objects.get(pk=revision.pk), actor=BOB, now=LATER)


def approving_execution() -> Act:
    make_agent()
    job = make_job()
    revise(job, version="1", require_approval=True)
    asking = run_job(job, target={"all": True}, actor=ALICE, now=NOW)
    AuditEntry.objects.all().delete()
    return lambda: approve_execution(Execution.objects.get(pk=asking.pk), actor=BOB, now=LATER)


def enrolling() -> Act:
    make_schedule()
    group = make_group("office")
    token = make_enrolment_token(actor=ALICE, now=NOW, group=group)[1]
    AuditEntry.objects.all().delete()
    newcomer = Newcomer(token, "pc", "n" * 43, "f" * 64, read_facts({}))
    return lambda: enrol(newcomer, now=NOW)


def revoking() -> Act:
    agent = make_agent()
    make_command(agent)
    make_command(agent, state=S.STARTED, started_at=NOW)
    return lambda: revoke_agent(agent, actor=ALICE, now=NOW)


def rotating() -> Act:
    agent = make_agent()
    return lambda: rotate_credential(agent, actor=ALICE, now=NOW)


def applying() -> Act:
    documents = [Given("site.yaml", one) for one in read_yaml(SITE)]
    return lambda: apply_documents(documents, actor=ALICE, now=NOW, atomic=True)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("prepare", "entries"),
    [
        pytest.param(running_job, ["run"], id="run a job"),
        pytest.param(firing, ["fire"], id="fire a schedule"),
        pytest.param(killing_execution, ["kill"], id="kill an execution"),
        pytest.param(killing_job, ["kill"], id="kill a job"),
        pytest.param(freezing, ["freeze"], id="freeze"),
        pytest.param(thawing, ["thaw"], id="thaw"),
        pytest.param(approving_revision, ["approve"], id="approve a revision"),
        pytest.param(approving_execution, ["approve"], id="approve an execution"),
        pytest.param(enrolling, ["enrol"], id="enrol"),
        pytest.param(revoking, ["revoke"], id="revoke a pc"),
        pytest.param(rotating, ["rotate"], id="ask for a new credential"),
        pytest.param(applying, ["create", "create", "create", "freeze"], id="apply all or none"),
    ],
)
def test_what_a_person_does_is_there_with_its_entry_or_not_at_all(
    prepare: Callable[[], Act], entries: list[str], after: bool
) -> None:
    act = prepare()

    def check() -> None:
        assert audited() == entries

    assert each_statement_fails(act, after=after, check=check) >= 3


# --- what the machine does -----------------------------------------------------------------------


def filling() -> Act:
    for _ in range(5):
        make_agent()
    job = make_job()
    assert job.current is not None
    plan = DispatchPlan(job.current, Origin.MANUAL, "alice", Target(all=True))
    in_pairs = patch("fleet.flow.filling.CHUNK", 2)
    with in_pairs:
        execution = dispatch(plan, now=NOW)
    return in_pairs(lambda: fill_chunk(execution.pk, now=NOW))


def releasing() -> Act:
    make_group("wave0", make_agent())
    make_group("wave1", make_agent(), make_agent())
    job = make_job()
    assert job.current is not None
    waves = tuple(PlannedWave(f"wave{n}", n * timedelta(minutes=1)) for n in range(2))
    plan = DispatchPlan(job.current, Origin.MANUAL, "a", Target(), rollout=Rollout(waves))
    execution = dispatch(plan, now=NOW)
    return lambda: release_wave(execution.pk, 1, now=LATER)


def delivering() -> Act:
    server_signer()
    agent, job = make_agent(), make_job()
    for _ in range(2):
        make_command(agent, job=job, max_concurrent=5)
    make_command(agent, deadline_at=NOW - LATER.resolution)
    return lambda: deliver(agent.pk, in_hand=frozenset(), most_bytes=10**6, now=NOW)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("prepare", "states"),
    [
        pytest.param(filling, {"queued": 2}, id="fill a chunk"),
        pytest.param(releasing, {"queued": 3}, id="release a wave"),
        pytest.param(delivering, {"handed_out": 2, "expired": 1}, id="hand out"),
    ],
)
def test_a_step_of_the_machine_is_whole_or_nothing_of_it_is_there(
    prepare: Callable[[], Act],
    states: dict[str, int],
    after: bool,
) -> None:
    act = prepare()

    def check() -> None:
        found = list(Command.objects.values_list("state", flat=True))
        assert {state: found.count(state) for state in found} == states

    assert each_statement_fails(act, after=after, check=check) >= 3


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_results_are_stored_and_told_or_neither(after: bool) -> None:
    agent = make_agent()
    commands = [make_command(agent, state=S.STARTED, attempt=1) for _ in range(2)]
    told: Verdicts = {}

    def act() -> None:
        told.clear()
        told.update(collect(agent.pk, [result(one) for one in commands], now=NOW))

    def check() -> None:
        # One that failed among others is stored by itself; one that is not told comes again.
        ended = Command.objects.filter(state=S.SUCCEEDED)
        assert set(ended.values_list("pk", flat=True)) == set(told)
        assert set(Result.objects.values_list("pk", flat=True)) == set(told)

    assert each_statement_fails(act, after=after, check=check) > 10


def due_agents() -> Schedule:
    schedule = make_schedule()
    for _ in range(3):
        make_schedule_agent(schedule, make_agent())
    return schedule


def due_calendar() -> Schedule:
    schedule = make_schedule(when={"calendar": {"at": "12:00"}}, tz="utc", misfire="once")
    Schedule.objects.filter(pk=schedule.pk).update(next_fire_at=NOW)
    for _ in range(3):
        make_agent()
    return schedule


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    "prepare",
    [pytest.param(due_agents, id="agents due"), pytest.param(due_calendar, id="calendar due")],
)
def test_a_tick_fires_as_a_whole_or_later(prepare: Callable[[], Schedule], after: bool) -> None:
    schedule = prepare()

    def fired() -> bool:
        """Whether it has fired as a whole; fails where the half of it is there."""
        marks = schedule.schedule_agents.exclude(last_dispatched_at=None).count()
        linked = schedule.occurrences.exclude(execution_id=None).count()
        assert schedule.occurrences.count() == linked
        executions = list(Execution.objects.values_list("state", "planned"))
        found = (executions, Command.objects.count(), marks + 3 * linked)
        assert found in (([], 0, 0), ([("live", 3)], 3, 3))
        return bool(executions)

    def check() -> None:
        if not fired():
            # One that failed is looked at again after five minutes.
            AgentPresence.objects.update(last_seen_at=MUCH_LATER)
            tick(now=MUCH_LATER)
        assert fired()

    assert each_statement_fails(lambda: tick(now=NOW), after=after, check=check) > 10
