"""People who act at the same moment."""

import threading
from collections.abc import Callable, Sequence

import pytest
from django.contrib.auth.models import User
from django.db import connection

from fleet.models import Job, JobRevision, Schedule
from fleet.operations.approving import approve_revision
from fleet.operations.jobs import delete_job, revoke_job, save_job, unrevoke_job
from fleet.operations.schedules import save_schedule
from fleet.rules.refusals import Conflict, Invalid
from scheduler.models import AuditEntry
from scheduler.public import Actor
from tests.fleet.make import NOW, make_agent, make_job, make_schedule_agent, revise
from tests.fleet.rules.manifest.documents import executing, job, schedule

pytestmark = [
    pytest.mark.concurrency,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("asked"),
]


def at_once(*acts: Callable[[], object]) -> Sequence[str]:
    """Do all acts at the same moment; how each ended: done, or the name of its error."""
    barrier = threading.Barrier(len(acts))
    outcomes: list[str] = []

    def attempt(act: Callable[[], object]) -> None:
        barrier.wait()
        try:
            act()
            outcomes.append("done")
        except (Conflict, Invalid) as refusal:
            outcomes.append(type(refusal).__name__)
        finally:
            connection.close()

    threads = [threading.Thread(target=attempt, args=[act]) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(outcomes)


def test_the_same_new_job_saved_by_four_is_one_job_with_one_revision(alice: Actor) -> None:
    acts = [lambda: save_job(job(), actor=alice, now=NOW, must_be_new=True)] * 4
    assert at_once(*acts) == ["Conflict", "Conflict", "Conflict", "done"]
    assert (Job.objects.count(), JobRevision.objects.count()) == (1, 1)


def test_two_edits_under_one_new_version_are_one_revision(alice: Actor) -> None:
    save_job(job(), actor=alice, now=NOW)
    first, second = (executing(script=name) | {"version": "2"} for name in ("a", "b"))
    outcomes = at_once(
        lambda: save_job(first, actor=alice, now=NOW),
        lambda: save_job(second, actor=alice, now=NOW),
    )
    assert outcomes == ["Invalid", "done"]
    assert JobRevision.objects.filter(version="2").count() == 1


def test_a_revision_is_approved_once() -> None:
    User.objects.bulk_create([User(pk=1, username="alice"), User(pk=2, username="bob")])
    revision = revise(make_job(), version="2", current=False, require_approval=True)
    bob = Actor("user", "bob", 2)
    acts = [
        lambda: approve_revision(JobRevision.objects.get(pk=revision.pk), actor=bob, now=NOW)
    ] * 3
    assert at_once(*acts) == ["Conflict", "Conflict", "done"]
    assert AuditEntry.objects.filter(action="approve").count() == 1


def test_a_job_is_not_deleted_under_a_schedule_that_is_being_made(alice: Actor) -> None:
    save_job(job(), actor=alice, now=NOW)
    found = Job.objects.get()
    outcomes = at_once(
        lambda: save_schedule(schedule(), actor=alice, now=NOW),
        lambda: delete_job(found, actor=alice, now=NOW),
    )
    # Whoever comes second is told why not.
    assert outcomes in (["Conflict", "done"], ["Invalid", "done"])
    assert Job.objects.exists() is Schedule.objects.exists()


def test_edits_of_a_job_and_of_its_schedule_do_not_wait_for_each_other_for_ever(
    alice: Actor,
) -> None:
    save_job(job(), actor=alice, now=NOW)
    save_schedule(schedule(), actor=alice, now=NOW)
    make_schedule_agent(Schedule.objects.get(), make_agent(), failures=1)
    found = Job.objects.get()

    def edit_job() -> None:
        for number in range(2, 12):
            save_job(job(version=str(number)), actor=alice, now=NOW)

    def edit_schedule() -> None:
        for number in range(1, 11):
            save_schedule(schedule(jitter=f"{number}m"), actor=alice, now=NOW)

    def revoke() -> None:
        for _ in range(10):
            revoke_job(found, actor=alice, now=NOW)
            unrevoke_job(found, actor=alice, now=NOW)

    assert at_once(edit_job, edit_schedule, revoke) == ["done", "done", "done"]
    assert Job.objects.get().latest == JobRevision.objects.get(number=11)
    assert Schedule.objects.get().manifest["jitter"] == "10m"
