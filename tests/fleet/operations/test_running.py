"""Running a job by hand."""

from datetime import timedelta

import pytest

from fleet.models import Command, Execution, Job, Origin
from fleet.operations.freezing import set_freeze
from fleet.operations.jobs import delete_job, revoke_job
from fleet.operations.running import run_job
from fleet.rules.refusals import Conflict, Frozen, Invalid, NotFound
from scheduler.models import AuditEntry
from scheduler.public import Actor
from tests.fleet.make import NOW, make_agent, make_group, make_job, revise
from tests.fleet.operations.audited import acts

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("asked")]
WEEK = timedelta(days=7)
ALL = {"all": True}


def nothing_was_dispatched() -> bool:
    return not Execution.objects.exists() and not Command.objects.exists()


def problems_of(error: pytest.ExceptionInfo[Invalid]) -> list[str]:
    return [str(problem) for problem in error.value.problems]


def test_a_run_is_an_execution_of_the_whole_target_alive_or_not(alice: Actor) -> None:
    job = make_job("patch")
    make_agent("pc-1")
    make_agent("pc-2", last_seen_at=None)
    execution = run_job(job, target=ALL, actor=alice, now=NOW, reason="monthly")
    assert (execution.origin, execution.state, execution.actor) == (Origin.MANUAL, "live", "alice")
    assert (execution.target, execution.reason, execution.planned) == (ALL, "monthly", 2)
    commands = Command.objects.order_by("agent__name").values_list(
        "agent__name", "state", "deadline_at"
    )
    assert list(commands) == [("pc-1", "queued", NOW + WEEK), ("pc-2", "queued", NOW + WEEK)]
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.object_id, entry.reason) == ("run", "patch", "monthly")
    assert entry.after == {
        "execution": str(execution.pk),
        "version": "1",
        "target": ALL,
        "override_freeze": False,
    }


def test_a_pc_that_is_named_twice_gets_one_command(alice: Actor) -> None:
    make_group("office", make_agent("pc-1"), make_agent("pc-2"))
    target = {"groups": ["office"], "pcs": ["PC-1"]}
    assert run_job(make_job(), target=target, actor=alice, now=NOW).planned == 2


def test_a_deadline_is_everybodys_last_start(alice: Actor) -> None:
    make_agent()
    run_job(make_job(), target=ALL, actor=alice, now=NOW, deadline="4h")
    assert Command.objects.get().deadline_at == NOW + timedelta(hours=4)


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        pytest.param({}, "target: names nobody; write all, groups or pcs", id="18#1"),
        pytest.param({"groups": []}, "target: names nobody; write all, groups or pcs", id="lists"),
        pytest.param(None, "target: must be a mapping (all, groups, pcs), not nothing", id="null"),
        pytest.param({"pc": ["x"]}, 'target.pc: unknown key; did you mean "pcs"?', id="key"),
        pytest.param({"pcs": ["ghost"]}, 'target: there is no PC or group "ghost"', id="T-44 pc"),
        pytest.param({"groups": ["g"]}, 'target: there is no PC or group "g"', id="T-44 group"),
    ],
)
def test_a_target_that_means_nobody_is_an_error_and_never_everybody(
    alice: Actor, target: object, problem: str
) -> None:
    make_agent()
    with pytest.raises(Invalid) as caught:
        run_job(make_job(), target=target, actor=alice, now=NOW)
    assert problems_of(caught)[0] == problem
    assert nothing_was_dispatched()


def test_all_that_is_wrong_with_a_run_is_named_at_once(alice: Actor) -> None:
    job = make_job(execute={"params": {"SITE": {"required": True}}})
    with pytest.raises(Invalid) as caught:
        run_job(
            job,
            target={"pcs": ["ghost"]},
            actor=alice,
            now=NOW,
            deadline="soon",
            override_freeze=True,
        )
    assert [problem.path for problem in caught.value.problems] == [
        "target",
        "params.SITE",
        "reason",
        "deadline",
    ]


def test_parameters_are_kept_with_the_execution(alice: Actor) -> None:
    make_agent()
    job = make_job(execute={"params": {"SITE": {"required": True}}})
    execution = run_job(job, target=ALL, actor=alice, now=NOW, params={"SITE": "; rm"})
    assert execution.plan["params"] == {"SITE": "; rm"}


def test_a_revoked_job_does_not_run(alice: Actor) -> None:
    make_agent()
    job = make_job("patch")
    revoke_job(job, actor=alice, now=NOW)
    with pytest.raises(Conflict, match="is revoked"):
        run_job(job, target=ALL, actor=alice, now=NOW)
    assert nothing_was_dispatched()


def test_a_job_without_an_approved_revision_does_not_run(alice: Actor) -> None:
    make_agent()
    job = Job.objects.create(slug="new", created_at=NOW, updated_at=NOW)
    revise(job, version="1", current=False, require_approval=True)
    with pytest.raises(Conflict, match="no revision"):
        run_job(job, target=ALL, actor=alice, now=NOW)


def test_a_deleted_job_does_not_run(alice: Actor) -> None:
    job = make_job()
    delete_job(job, actor=alice, now=NOW)
    with pytest.raises(NotFound):
        run_job(job, target=ALL, actor=alice, now=NOW)


def test_nothing_runs_while_the_fleet_is_frozen(alice: Actor) -> None:
    make_agent()
    set_freeze({"reason": "holidays"}, actor=alice, now=NOW)
    with pytest.raises(Frozen, match="the fleet is frozen: holidays"):
        run_job(make_job(), target=ALL, actor=alice, now=NOW)
    assert nothing_was_dispatched()
    assert acts() == [("freeze", "freeze", "freeze")]


def test_an_override_runs_and_keeps_its_reason(alice: Actor) -> None:
    make_agent()
    set_freeze({}, actor=alice, now=NOW)
    execution = run_job(
        make_job(), target=ALL, actor=alice, now=NOW, reason="outage", override_freeze=True
    )
    assert (execution.override_freeze, execution.reason) == (True, "outage")
    assert Command.objects.get().override_freeze


def test_a_job_that_requires_approval_waits_for_a_second_person(alice: Actor) -> None:
    make_agent()
    job = make_job()
    revise(job, version="1", require_approval=True)
    execution = run_job(job, target=ALL, actor=alice, now=NOW)
    assert execution.state == "awaiting_approval"
    assert not Command.objects.exists()
