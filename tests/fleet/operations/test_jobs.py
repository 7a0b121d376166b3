"""Saving, deleting and revoking jobs."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group as Role
from django.contrib.auth.models import User

from fleet.flow.published import Change
from fleet.models import Job, JobRevision, ScheduleAgent
from fleet.operations.jobs import delete_job, revoke_job, save_job, store_job, unrevoke_job
from fleet.rules.refusals import Conflict, Invalid, NotFound
from scheduler.models import AuditEntry
from scheduler.public import Actor
from tests.fleet.make import (
    NOW,
    make_agent,
    make_command,
    make_job,
    make_schedule,
    make_schedule_agent,
)
from tests.fleet.operations.audited import acts
from tests.fleet.rules.manifest.documents import executing, job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("asked")]
LATER = NOW + timedelta(hours=1)


def problems_of(error: pytest.ExceptionInfo[Invalid]) -> list[str]:
    return [str(problem) for problem in error.value.problems]


def test_a_new_job_has_one_revision_that_runs(alice: Actor) -> None:
    found = save_job(job(), actor=alice, now=NOW)
    revision = JobRevision.objects.get()
    assert (found.slug, found.current, found.latest) == ("inventory", revision, revision)
    assert (revision.number, revision.version, revision.created_by) == (1, "1", "alice")
    assert revision.manifest == job()
    assert acts() == [("create", "job", "inventory")]
    assert AuditEntry.objects.get().after == job()


def test_saving_what_is_stored_changes_nothing(alice: Actor) -> None:
    save_job(job(), actor=alice, now=NOW)
    found = store_job(job(), actor=alice, now=LATER)
    assert found.change is Change.UNCHANGED
    assert JobRevision.objects.count() == 1
    assert Job.objects.get().updated_at == NOW
    assert acts() == [("create", "job", "inventory")]


def test_a_changed_description_is_a_new_revision_of_the_same_version(alice: Actor) -> None:
    save_job(job(), actor=alice, now=NOW)
    found = save_job(job(description="new"), actor=alice, now=LATER)
    assert found.current is not None
    assert (found.current.number, found.current.version) == (2, "1")
    entry = AuditEntry.objects.latest("pk")
    assert (entry.action, entry.before, entry.after) == (
        "update",
        job(),
        job(description="new"),
    )


def test_a_changed_script_under_a_used_version_is_refused(alice: Actor) -> None:
    save_job(job(), actor=alice, now=NOW)
    with pytest.raises(Invalid) as caught:
        save_job(executing(script="uname -r"), actor=alice, now=LATER)
    assert problems_of(caught) == [
        'version: execute changed, and version "1" is used already; write a new version'
    ]
    assert caught.value.field == "version"
    assert JobRevision.objects.count() == 1


def test_a_version_keeps_its_content_for_ever(alice: Actor) -> None:
    save_job(job(), actor=alice, now=NOW)
    save_job(executing(script="uname -r") | {"version": "2"}, actor=alice, now=NOW)
    with pytest.raises(Invalid):
        save_job(executing(script="uname -m"), actor=alice, now=NOW)
    rolled_back = save_job(job(), actor=alice, now=NOW)
    assert rolled_back.current is not None
    assert (rolled_back.current.number, rolled_back.current.version) == (3, "1")


def test_all_problems_of_a_document_are_named(alice: Actor) -> None:
    with pytest.raises(Invalid) as caught:
        save_job({"id": "a b", "version": "1", "execute": {}}, actor=alice, now=NOW)
    assert [problem.path for problem in caught.value.problems] == [
        "id",
        "execute.shell",
        "execute.script",
        "execute.timeout",
    ]
    assert not Job.objects.exists()


def test_a_new_job_must_not_be_there_yet(alice: Actor) -> None:
    save_job(job(), actor=alice, now=NOW)
    with pytest.raises(Conflict, match='there is a job "inventory" already') as caught:
        save_job(job(description="x"), actor=alice, now=NOW, must_be_new=True)
    assert caught.value.field == "id"
    assert JobRevision.objects.count() == 1


def test_an_id_in_another_case_is_the_same_job_and_is_refused(alice: Actor) -> None:
    save_job(job(), actor=alice, now=NOW)
    with pytest.raises(Conflict, match="write its id so"):
        save_job(job(id="Inventory"), actor=alice, now=NOW)


def test_a_set_keeps_what_it_made(alice: Actor) -> None:
    save_job(job(), actor=alice, now=NOW, set_name="site")
    with pytest.raises(Conflict, match='belongs to the set "site"'):
        save_job(job(), actor=alice, now=NOW, set_name="other")
    assert save_job(job(description="by hand"), actor=alice, now=NOW).set_name == "site"


def test_a_new_version_forgets_failures_and_looks_at_schedules_again(
    alice: Actor, asked: list[tuple[str, str | None]]
) -> None:
    save_job(job(), actor=alice, now=NOW)
    schedule = make_schedule(job=Job.objects.get())
    make_schedule_agent(schedule, make_agent(), failures=3, last_failed_at=NOW)
    asked.clear()
    save_job(executing(script="uname -r") | {"version": "2"}, actor=alice, now=LATER)
    row = ScheduleAgent.objects.get()
    assert (row.failures, row.last_failed_at) == (0, None)
    schedule.refresh_from_db()
    assert (schedule.targets_dirty_at, schedule.look_at) == (LATER, LATER)
    key = str(schedule.pk)
    assert asked == [("fleet.targets", key), ("fleet.evaluate", key)]


def test_a_changed_description_keeps_the_count_of_failures(alice: Actor) -> None:
    save_job(job(), actor=alice, now=NOW)
    schedule = make_schedule(job=Job.objects.get())
    make_schedule_agent(schedule, make_agent(), failures=3)
    save_job(job(description="new"), actor=alice, now=LATER)
    assert ScheduleAgent.objects.get().failures == 3


def make_approver() -> User:
    user = User.objects.create_user("bob")
    user.groups.add(Role.objects.get(name="approver"))
    return user


def test_an_approval_nobody_else_may_give_is_refused_at_save(alice: Actor) -> None:
    with pytest.raises(Invalid) as caught:
        save_job(job(require_approval=True), actor=alice, now=NOW)
    assert problems_of(caught) == [
        "require_approval: nobody else may approve; give somebody the role approver first"
    ]
    assert not Job.objects.exists()


def test_whoever_saves_is_no_second_approver() -> None:
    bob = make_approver()
    with pytest.raises(Invalid):
        save_job(job(require_approval=True), actor=Actor("user", "bob", bob.pk), now=NOW)


def test_a_revision_that_needs_approval_does_not_run_yet(alice: Actor) -> None:
    make_approver()
    save_job(job(), actor=alice, now=NOW)
    found = save_job(job(require_approval=True), actor=alice, now=NOW)
    assert found.current is not None
    assert found.latest is not None
    assert (found.current.number, found.latest.number) == (1, 2)
    assert found.latest.requires_approval


def test_dropping_the_requirement_needs_the_approval_itself(alice: Actor) -> None:
    make_approver()
    save_job(job(require_approval=True), actor=alice, now=NOW)
    found = save_job(executing(script="evil") | {"version": "2"}, actor=alice, now=NOW)
    assert found.latest is not None
    assert (found.current, found.latest.requires_approval) == (None, True)


def test_a_job_that_a_schedule_uses_is_not_deleted(alice: Actor) -> None:
    found = make_job()
    make_schedule("nightly", job=found)
    with pytest.raises(Conflict, match='the schedule "nightly" uses it'):
        delete_job(found, actor=alice, now=NOW)
    assert Job.objects.get().revoked_at is None
    assert acts() == []


def test_a_deleted_job_is_revoked_hidden_and_kept_for_its_history(alice: Actor) -> None:
    found = make_job("old")
    command = make_command(job=found)
    delete_job(found, actor=alice, now=NOW)
    assert not Job.objects.exists()
    command.refresh_from_db()
    assert (command.job.revoked_at, command.job.deleted_at) == (NOW, NOW)
    assert acts() == [("delete", "job", "old")]


def test_a_job_made_again_is_still_revoked(alice: Actor) -> None:
    save_job(job(), actor=alice, now=NOW)
    delete_job(Job.objects.get(), actor=alice, now=NOW)
    found = store_job(job(), actor=alice, now=LATER, must_be_new=True)
    assert (found.change, found.before) == (Change.CREATE, None)
    assert (found.row.revoked_at, found.row.deleted_at) == (NOW, None)
    assert Job.objects.get().latest == JobRevision.objects.get()


def test_deleting_twice_finds_nothing_the_second_time(alice: Actor) -> None:
    found = make_job()
    delete_job(found, actor=alice, now=NOW)
    with pytest.raises(NotFound):
        delete_job(found, actor=alice, now=NOW)


def test_revoking_twice_is_one_act(alice: Actor, asked: list[Any]) -> None:
    found = make_job("patch")
    schedule = make_schedule(job=found)
    revoke_job(found, actor=alice, now=NOW, reason="broken")
    revoke_job(found, actor=alice, now=LATER)
    assert Job.objects.get().revoked_at == NOW
    assert acts() == [("revoke", "job", "patch")]
    assert AuditEntry.objects.get().reason == "broken"
    assert asked == [("fleet.evaluate", str(schedule.pk))]


def test_a_revocation_is_taken_back(alice: Actor) -> None:
    found = make_job("patch")
    revoke_job(found, actor=alice, now=NOW)
    unrevoke_job(found, actor=alice, now=LATER)
    assert Job.objects.get().revoked_at is None
    assert acts() == [("revoke", "job", "patch"), ("unrevoke", "job", "patch")]


def test_a_parameter_becomes_required_only_where_every_schedule_gives_it(alice: Actor) -> None:
    found = save_job(executing(params={"SITE": "x", "DAYS": "7"}), actor=alice, now=NOW)
    make_schedule("with", job=found, params={"SITE": "y"})
    make_schedule("without", job=found)
    needs = executing(params={"SITE": {"required": True}, "DAYS": "7"}) | {"version": "2"}
    with pytest.raises(Invalid) as error:
        save_job(needs, actor=alice, now=LATER)
    (problem,) = problems_of(error)
    assert problem == (
        'execute.params.SITE: the schedule "without" gives no value; first add the parameter '
        "with a default and write its value in the schedule"
    )
    assert JobRevision.objects.count() == 1


def test_a_required_parameter_that_every_schedule_gives_is_taken(alice: Actor) -> None:
    found = save_job(executing(params={"SITE": "x"}), actor=alice, now=NOW)
    make_schedule("with", job=found, params={"SITE": "y"})
    save_job(
        executing(params={"SITE": {"required": True}}) | {"version": "2"}, actor=alice, now=LATER
    )
    assert JobRevision.objects.count() == 2
