"""What people do to schedules: save, switch on and off, delete."""

from collections.abc import Iterator
from datetime import datetime
from functools import partial

from django.db import transaction

from fleet.flow.manifests import job_manifest, local_zone
from fleet.flow.publish import publish_schedule
from fleet.flow.published import Change, Published
from fleet.flow.wakes import wake_everybody
from fleet.models import Job, Schedule
from fleet.operations.inputs import racing, require_free, valid
from fleet.operations.jobs import revoke_job
from fleet.operations.stopping import kill_job
from fleet.rules.manifest import ScheduleManifest, fingerprint, parse_schedule
from fleet.rules.params import param_problems
from fleet.rules.problems import Problem
from fleet.rules.refusals import Invalid, NotFound
from fleet.rules.when import Calendar
from scheduler.public import Actor, record_act
from scheduler.rules import cron


def save_schedule(
    document: object, *, actor: Actor, now: datetime, must_be_new: bool = False, set_name: str = ""
) -> Schedule:
    """Create or update a schedule from its manifest; it is armed and looked at at once."""
    return store_schedule(
        document, actor=actor, now=now, must_be_new=must_be_new, set_name=set_name
    ).row


def store_schedule(
    document: object, *, actor: Actor, now: datetime, must_be_new: bool = False, set_name: str = ""
) -> Published[Schedule]:
    """As `save_schedule`; says what it did. Invalid, Conflict."""
    manifest = valid(partial(parse_schedule, local=local_zone()), document)
    with racing("schedule"), transaction.atomic():
        # Held until the schedule is written, so that nobody deletes the job meanwhile. Before the
        # schedule: everybody locks in that order.
        job = Job.objects.with_slug(manifest.job_id).select_for_update(no_key=True).first()
        existing = Schedule.objects.with_slug(manifest.id).select_for_update(no_key=True).first()
        require_free(existing, manifest.id, must_be_new=must_be_new, set_name=set_name)
        problems = list(_problems(manifest, job, now))
        if problems or job is None:
            raise Invalid(problems)
        published = publish_schedule(manifest, job, set_name=set_name, now=now)
        if published.change is not Change.UNCHANGED:
            record_act(
                actor,
                published.change,
                object_kind="schedule",
                object_id=published.row.slug,
                before=published.before,
                after=published.after,
                now=now,
            )
    return published


def _problems(manifest: ScheduleManifest, job: Job | None, now: datetime) -> Iterator[Problem]:
    """What only the clock and the other rows can tell."""
    if job is None:
        yield Problem("job_id", f'there is no job "{manifest.job_id}"')
    elif job.latest is not None:
        declared = job_manifest(job.latest).execute.params
        yield from param_problems(declared, dict(manifest.params))
    when = manifest.when
    if isinstance(when, Calendar) and when.cron is not None:
        try:
            cron.parse_for_save(when.cron, now=now, tz=manifest.zone(local_zone()))
        except cron.CronError as error:
            yield Problem("when.calendar.cron", str(error))


def enable_schedule(schedule: Schedule, *, actor: Actor, now: datetime) -> None:
    """Switch it on; what fell due while it was off is not caught up. Twice is once."""
    _switch(schedule, on=True, actor=actor, now=now)


def disable_schedule(
    schedule: Schedule,
    *,
    actor: Actor,
    now: datetime,
    cascade: bool = False,
    cascade_kill: bool = False,
    reason: str = "",
) -> None:
    """Switch it off; `cascade` revokes its job too, `cascade_kill` also stops what runs of it."""
    with transaction.atomic():
        if cascade or cascade_kill:
            Job.objects.filter(pk=schedule.job_id).select_for_update(no_key=True).first()
        _switch(schedule, on=False, actor=actor, now=now, reason=reason)
        if cascade or cascade_kill:
            revoke_job(schedule.job, actor=actor, now=now, reason=reason)
        if cascade_kill:
            kill_job(schedule.job, actor=actor, now=now, reason=reason)


def _switch(schedule: Schedule, *, on: bool, actor: Actor, now: datetime, reason: str = "") -> None:
    """Change the one key. A stored manifest that is not valid any more can be switched off."""
    with transaction.atomic():
        found = _locked(schedule)
        if found.enabled is on:
            return
        document = {key: value for key, value in found.manifest.items() if key != "enabled"}
        if on:
            manifest = valid(parse_schedule, document)
            publish_schedule(manifest, found.job, set_name="", now=now)
        else:
            document["enabled"] = False
            Schedule.objects.filter(pk=found.pk).update(
                enabled=False,
                manifest=document,
                fingerprint=fingerprint(document),
                updated_at=now,
            )
            if found.runs_on_agent:
                wake_everybody()
        record_act(
            actor,
            "enable" if on else "disable",
            object_kind="schedule",
            object_id=found.slug,
            before={"enabled": not on},
            after={"enabled": on},
            reason=reason,
            now=now,
        )
    schedule.refresh_from_db()


def delete_schedule(schedule: Schedule, *, actor: Actor, now: datetime) -> None:
    """Delete it; its executions stay and remember its id."""
    with transaction.atomic():
        found = _locked(schedule)
        record_act(
            actor,
            "delete",
            object_kind="schedule",
            object_id=found.slug,
            before=found.manifest,
            now=now,
        )
        found.delete()
        if found.runs_on_agent:
            wake_everybody()


def _locked(schedule: Schedule) -> Schedule:
    found = (
        Schedule.objects.filter(pk=schedule.pk)
        .select_related("job")
        .select_for_update(of=("self",), no_key=True)
        .first()
    )
    if found is None:
        raise NotFound(f'there is no schedule "{schedule.slug}"')
    return found
