"""What people do to jobs: save, delete, revoke and take back the revocation."""

from datetime import datetime

from django.contrib.auth import get_user_model
from django.db import transaction

from fleet.flow.asking import look_again
from fleet.flow.manifests import job_manifest
from fleet.flow.published import Change, Published
from fleet.flow.revisions import publish_job
from fleet.models import Job, Schedule
from fleet.operations.inputs import racing, require_free, valid
from fleet.rules.manifest import JobManifest, parse_job
from fleet.rules.problems import Problem
from fleet.rules.refusals import Conflict, Invalid, NotFound
from scheduler.public import Actor, record_act

_PERMISSIONS = "django.contrib.auth.backends.ModelBackend"


def save_job(
    document: object, *, actor: Actor, now: datetime, must_be_new: bool = False, set_name: str = ""
) -> Job:
    """Create or update a job from its manifest; a changed one is a new revision."""
    return store_job(document, actor=actor, now=now, must_be_new=must_be_new, set_name=set_name).row


def store_job(
    document: object, *, actor: Actor, now: datetime, must_be_new: bool = False, set_name: str = ""
) -> Published[Job]:
    """As `save_job`; says what it did. Invalid, Conflict."""
    manifest = valid(parse_job, document)
    with racing("job"), transaction.atomic():
        existing = Job.objects.with_slug(manifest.id).select_for_update(no_key=True).first()
        require_free(existing, manifest.id, must_be_new=must_be_new, set_name=set_name)
        if existing is not None:
            _require_values(existing, manifest)
        published = publish_job(manifest, actor=actor, set_name=set_name, now=now)
        if published.change is not Change.UNCHANGED:
            _require_second_approver(manifest, actor)
            record_act(
                actor,
                published.change,
                object_kind="job",
                object_id=published.row.slug,
                before=published.before,
                after=published.after,
                now=now,
            )
    return published


def _require_values(job: Job, manifest: JobManifest) -> None:
    """A parameter that becomes required needs a value in every schedule that uses the job."""
    required = {param.name for param in manifest.execute.params if param.required}
    if job.latest is not None:
        before = job_manifest(job.latest).execute.params
        required -= {param.name for param in before if param.required}
    if not required:
        return
    problems = [
        Problem(
            f"execute.params.{name}",
            f'the schedule "{schedule.slug}" gives no value; first add the parameter with a '
            "default and write its value in the schedule",
        )
        for schedule in Schedule.objects.filter(job=job).order_by("slug")
        for name in sorted(required - set(schedule.manifest.get("params", {})))
    ]
    if problems:
        raise Invalid(problems)


def _require_second_approver(manifest: JobManifest, actor: Actor) -> None:
    """An approval that nobody may give would hold the job for ever."""
    if not manifest.require_approval:
        return
    approvers = (
        get_user_model()
        .objects.with_perm("fleet.approve_job", backend=_PERMISSIONS)  # active ones alone
        .exclude(pk=actor.user_id or 0)
    )
    if not approvers.exists():
        message = "nobody else may approve; give somebody the role approver first"
        raise Invalid([Problem("require_approval", message)])


def delete_job(job: Job, *, actor: Actor, now: datetime) -> None:
    """Revoke and delete a job; Conflict while a schedule uses it. Its history stays."""
    with transaction.atomic():
        found = _locked(job)
        user = Schedule.objects.filter(job=job).order_by("slug").first()
        if user is not None:
            message = f'the schedule "{user.slug}" uses it; delete or change that first'
            raise Conflict(message)
        Job.objects.filter(pk=job.pk).update(
            revoked_at=found.revoked_at or now, deleted_at=now, set_name="", updated_at=now
        )
        record_act(
            actor,
            "delete",
            object_kind="job",
            object_id=found.slug,
            before=found.latest.manifest if found.latest else None,
            now=now,
        )


def revoke_job(job: Job, *, actor: Actor, now: datetime, reason: str = "") -> None:
    """Forbid the job to start anywhere, queued commands included. Twice is once."""
    _set_revoked(job, now, "revoke", actor=actor, reason=reason, now=now)


def unrevoke_job(job: Job, *, actor: Actor, now: datetime, reason: str = "") -> None:
    """Allow the job to start again. Twice is once."""
    _set_revoked(job, None, "unrevoke", actor=actor, reason=reason, now=now)


def _set_revoked(
    job: Job, at: datetime | None, action: str, *, actor: Actor, reason: str, now: datetime
) -> None:
    with transaction.atomic():
        found = _locked(job)
        if (found.revoked_at is None) == (at is None):
            return
        Job.objects.filter(pk=job.pk).update(revoked_at=at, updated_at=now)
        job.revoked_at = at
        record_act(
            actor,
            action,
            object_kind="job",
            object_id=found.slug,
            before={"revoked": found.revoked_at is not None},
            after={"revoked": at is not None},
            reason=reason,
            now=now,
        )
        look_again(Schedule.objects.filter(job=job), now=now)


def _locked(job: Job) -> Job:
    found = Job.objects.filter(pk=job.pk).select_for_update(no_key=True).first()
    if found is None:
        raise NotFound(f'there is no job "{job.slug}"')
    return found
