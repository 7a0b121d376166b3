"""A second person approves."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from fleet.models import Command, Execution, Job, JobRevision
from fleet.operations.approving import approve_execution, approve_revision
from fleet.operations.freezing import set_freeze
from fleet.operations.running import run_job
from fleet.operations.stopping import kill_execution
from fleet.rules.refusals import Conflict, Frozen, NotAllowed
from scheduler.models import AuditEntry
from scheduler.public import Actor
from tests.fleet.make import NOW, make_agent, make_job, revise
from tests.fleet.operations.audited import acts

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("asked")]
BOB = Actor("user", "bob", 2)
LATER = NOW + timedelta(hours=1)


@pytest.fixture(autouse=True)
def accounts() -> None:
    """Those whom the audit names by their keys."""
    User.objects.bulk_create([User(pk=1, username="alice"), User(pk=2, username="bob")])


@pytest.fixture
def job() -> Job:
    """A job whose second revision waits for approval."""
    found = make_job("patch")
    revise(found, version="2", current=False, require_approval=True)
    return found


def waiting(job: Job) -> JobRevision:
    return job.revisions.get(number=2)


def test_an_approved_revision_runs_from_then_on(job: Job) -> None:
    revision = waiting(job)
    approve_revision(revision, actor=BOB, now=LATER)
    job.refresh_from_db()
    assert (job.current, revision.approved_at, revision.approved_by) == (revision, LATER, "bob")
    assert acts() == [("approve", "job", "patch")]
    assert AuditEntry.objects.get().after == {
        "revision": 2,
        "version": "2",
        "sha256": revision.sha256,
    }


@pytest.mark.parametrize(
    ("author_id", "actor"),
    [
        pytest.param(None, Actor("user", "alice", 1), id="the same name"),
        pytest.param(2, Actor("user", "renamed", 2), id="the same account"),
        pytest.param(2, Actor("token", "bob", 2), id="by a token"),
    ],
)
def test_who_wrote_it_does_not_approve_it(job: Job, author_id: int | None, actor: Actor) -> None:
    job.revisions.update(created_by_id=author_id)
    with pytest.raises(NotAllowed):
        approve_revision(waiting(job), actor=actor, now=LATER)
    job.refresh_from_db()
    assert job.current != waiting(job)
    assert acts() == []


def test_a_namesake_with_another_account_may_approve(job: Job) -> None:
    job.revisions.update(created_by_id=1)
    approve_revision(waiting(job), actor=Actor("user", "alice", 2), now=LATER)
    assert waiting(job).approved_at == LATER


def test_approving_twice_is_refused_the_second_time(job: Job) -> None:
    stale = waiting(job)
    approve_revision(waiting(job), actor=BOB, now=NOW)
    with pytest.raises(Conflict, match="does not wait"):
        approve_revision(stale, actor=BOB, now=LATER)
    assert waiting(job).approved_at == NOW


def test_an_older_revision_is_not_approved_over_a_newer_one(job: Job) -> None:
    revise(job, version="3")
    with pytest.raises(Conflict, match="newer revision"):
        approve_revision(waiting(job), actor=BOB, now=LATER)
    assert waiting(job).approved_at is None


def test_a_revision_that_needs_no_approval_is_not_approved() -> None:
    revision = make_job().revisions.get()
    with pytest.raises(Conflict):
        approve_revision(revision, actor=BOB, now=LATER)


@pytest.fixture
def asking(alice: Actor) -> Execution:
    """An execution that alice asked for and that waits."""
    make_agent("pc-1")
    found = make_job("guarded")
    revise(found, version="1", require_approval=True)
    return run_job(found, target={"all": True}, actor=alice, now=NOW)


def test_an_approved_execution_starts_and_its_times_count_from_then(asking: Execution) -> None:
    approve_execution(asking, actor=BOB, now=LATER)
    assert asking.state == "live"
    command = Command.objects.get()
    assert (command.state, command.deadline_at) == ("queued", LATER + timedelta(days=7))
    assert acts()[1:] == [("approve", "execution", str(asking.pk))]


def test_who_asked_for_it_does_not_approve_it(asking: Execution, alice: Actor) -> None:
    with pytest.raises(NotAllowed):
        approve_execution(asking, actor=alice, now=LATER)
    assert not Command.objects.exists()


def test_a_stopped_execution_is_not_approved(asking: Execution) -> None:
    kill_execution(asking, actor=BOB, now=NOW)
    with pytest.raises(Conflict, match="does not wait"):
        approve_execution(asking, actor=BOB, now=LATER)
    assert not Command.objects.exists()


def test_an_edit_of_what_it_runs_voids_the_approval(asking: Execution) -> None:
    revise(asking.job, version="2", require_approval=True, execute={"script": "other"})
    with pytest.raises(Conflict, match="changed meanwhile"):
        approve_execution(asking, actor=BOB, now=LATER)
    assert not Command.objects.exists()


def test_nothing_is_approved_after_its_deadline(asking: Execution) -> None:
    with pytest.raises(Conflict, match="deadline has passed"):
        approve_execution(asking, actor=BOB, now=NOW + timedelta(days=7, seconds=1))


def test_nothing_is_started_by_approval_while_frozen(asking: Execution) -> None:
    set_freeze({}, actor=BOB, now=NOW)
    with pytest.raises(Frozen):
        approve_execution(asking, actor=BOB, now=LATER)
    asking.refresh_from_db()
    assert asking.state == "awaiting_approval"
