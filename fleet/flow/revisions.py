"""From a valid job to rows: revisions, and which of them runs.

Everything here runs in the caller's transaction. Publishing what is stored already changes nothing.
"""

from datetime import datetime

from django.db.models import Q

from fleet.flow.asking import RECONCILE, look_again, mark_targets
from fleet.flow.published import Published, change_of
from fleet.models import Job, JobRevision, Schedule, ScheduleAgent
from fleet.rules.manifest import JobManifest, execute_fingerprint, fingerprint, to_document
from fleet.rules.problems import Problem
from fleet.rules.refusals import Invalid
from scheduler.public import Actor


def publish_job(
    manifest: JobManifest, *, actor: Actor, set_name: str, now: datetime
) -> Published[Job]:
    """Store a job: a new revision where the document changed, else nothing.

    Invalid where what is run changed under a version that is used already.
    """
    job = Job.everything.with_slug(manifest.id).select_for_update(no_key=True).first()
    document = to_document(manifest)
    latest = job.latest if job else None
    before = None if job is None or latest is None or job.deleted_at else latest.manifest
    if job is None:
        job = Job.objects.create(slug=manifest.id, created_at=now, updated_at=now)
    job.set_name = set_name or job.set_name
    same = latest is not None and latest.sha256 == fingerprint(document)
    if not same:
        _require_new_version(job, manifest)
        _add_revision(job, manifest, latest, actor=actor, now=now)
    if job.deleted_at or not same:
        job.deleted_at, job.updated_at = None, now
    job.save(update_fields=["set_name", "latest", "deleted_at", "updated_at"])
    change = change_of(before, changed=not same)
    return Published(job, change, before, document)


def _require_new_version(job: Job, manifest: JobManifest) -> None:
    """A version names one content of `execute`, for ever."""
    clash = (
        job.revisions.filter(version=manifest.version)
        .exclude(execute_sha256=execute_fingerprint(manifest))
        .exists()
    )
    if clash:
        message = (
            f'execute changed, and version "{manifest.version}" is used already; '
            "write a new version"
        )
        raise Invalid([Problem("version", message)])


def _add_revision(
    job: Job,
    manifest: JobManifest,
    latest: JobRevision | None,
    *,
    actor: Actor,
    now: datetime,
) -> None:
    document = to_document(manifest)
    guarded = manifest.require_approval or _is_guarded(job)
    revision = JobRevision.objects.create(
        job=job,
        number=latest.number + 1 if latest else 1,
        version=manifest.version,
        manifest=document,
        sha256=fingerprint(document),
        execute_sha256=execute_fingerprint(manifest),
        requires_approval=guarded,
        created_at=now,
        created_by=actor.name,
        created_by_id=actor.user_id,
    )
    job.latest = revision
    if not guarded:
        make_current(job, revision, now=now)


def _is_guarded(job: Job) -> bool:
    """Whether what runs now, or an edit since, requires approval.

    Dropping the requirement is itself a change that a second person must approve.
    """
    since = job.current.number if job.current else 1
    return job.revisions.filter(number__gte=since, manifest__require_approval=True).exists()


def make_current(job: Job, revision: JobRevision, *, now: datetime) -> bool:
    """Let the revision run from now on; False where a newer one does already.

    Its schedules look again: another version counts successes and failures anew, and another
    timeout moves the pauses between dispatches.
    """
    older = Q(current=None) | Q(current__number__lt=revision.number)
    if not Job.everything.filter(older, pk=job.pk).update(current=revision, updated_at=now):
        return False
    previous, job.current = job.current, revision
    schedules = Schedule.objects.filter(job=job)
    mark_targets(schedules.filter(shape__in=RECONCILE, runs_on_agent=False), now=now)
    look_again(schedules, now=now)
    if previous is not None and previous.version != revision.version:
        ScheduleAgent.objects.filter(schedule__in=schedules).exclude(failures=0).update(
            failures=0, last_failed_at=None
        )
    return True
