"""A second person lets a revision run, or an execution start."""

from datetime import datetime

from django.db import transaction

from fleet.flow.dispatch import NothingToDispatchError, start
from fleet.flow.revisions import make_current
from fleet.models import Execution, Job, JobRevision
from fleet.operations.running import require_thaw, runnable_revision
from fleet.rules.execution_states import ExecutionState
from fleet.rules.refusals import Conflict, NotAllowed, NotFound
from scheduler.public import Actor, record_act


def approve_revision(
    revision: JobRevision, *, actor: Actor, now: datetime, reason: str = ""
) -> None:
    """Let the revision run from now on. NotAllowed for who wrote it; Conflict if it is too late."""
    _require_second_person(actor, revision.created_by, revision.created_by_id)
    with transaction.atomic():
        job = Job.objects.filter(pk=revision.job_id).select_for_update(no_key=True).first()
        if job is None:
            raise NotFound("the job of this revision is deleted")
        found = job.revisions.get(pk=revision.pk)
        _approve(job, found, actor, now)
        record_act(
            actor,
            "approve",
            object_kind="job",
            object_id=job.slug,
            after={"revision": found.number, "version": found.version, "sha256": found.sha256},
            reason=reason,
            now=now,
        )
    revision.refresh_from_db()


def _approve(job: Job, revision: JobRevision, actor: Actor, now: datetime) -> None:
    waiting = JobRevision.objects.filter(pk=revision.pk, requires_approval=True, approved_at=None)
    if not waiting.update(approved_at=now, approved_by=actor.name):
        raise Conflict("the revision does not wait for approval")
    if not make_current(job, revision, now=now):
        raise Conflict("a newer revision of the job runs already")


def approve_execution(
    execution: Execution, *, actor: Actor, now: datetime, reason: str = ""
) -> None:
    """Start an execution that waits for a second person; its times count from now.

    NotAllowed for who asked for it; Conflict where it does not wait any more, its deadline has
    passed, or what it would run was changed meanwhile; Frozen.
    """
    _require_second_person(actor, execution.actor, execution.actor_id)
    with transaction.atomic():
        found = (
            Execution.objects.select_related("job__current", "revision")
            .select_for_update(of=("self",))
            .get(pk=execution.pk)
        )
        _require_startable(found, now)
        require_thaw(now, override_freeze=found.override_freeze)
        _start(found, now=now)
        record_act(
            actor,
            "approve",
            object_kind="execution",
            object_id=found.pk,
            before={"state": ExecutionState.AWAITING_APPROVAL.value},
            reason=reason,
            now=now,
        )
    execution.refresh_from_db()


def _require_startable(execution: Execution, now: datetime) -> None:
    if execution.state != ExecutionState.AWAITING_APPROVAL:
        raise Conflict("the execution does not wait for approval")
    current = runnable_revision(execution.job)
    if current.execute_sha256 != execution.revision.execute_sha256:
        raise Conflict("the job was changed meanwhile; run it again")
    if execution.deadline_at < now:
        raise Conflict("its deadline has passed; run the job again")


def _start(execution: Execution, *, now: datetime) -> None:
    try:
        started = start(execution, now=now)
    except NothingToDispatchError as error:
        raise Conflict(str(error)) from None
    if not started:
        raise Conflict("the execution does not wait for approval")


def _require_second_person(actor: Actor, requester: str, requester_id: int | None) -> None:
    """Ids tell people apart where both have one; a name is all that a command has."""
    both = actor.user_id is not None and requester_id is not None
    same = actor.user_id == requester_id if both else actor.name == requester
    if same:
        raise NotAllowed("somebody else than who asked for it must approve")
