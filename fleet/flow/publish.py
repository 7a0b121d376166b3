"""From a valid schedule to its row, armed: next time, targets, and a look at it at once.

Everything here runs in the caller's transaction. Publishing what is stored already changes
nothing, and an edit that leaves the timing alone re-arms nothing: a fire that is due stays due.
"""

from dataclasses import dataclass
from datetime import datetime

from fleet.flow.asking import RECONCILE, look_again, mark_targets
from fleet.flow.manifests import local_zone
from fleet.flow.published import Published, change_of
from fleet.flow.wakes import wake_everybody
from fleet.models import Job, Schedule, ScheduleAgent, Shape
from fleet.rules import calendar
from fleet.rules.manifest import RunsOn, ScheduleManifest, fingerprint, to_document
from fleet.rules.when import Calendar, PerPc, PerTarget

_SHAPES = {PerPc: Shape.PER_PC, PerTarget: Shape.PER_TARGET, Calendar: Shape.CALENDAR}
# The keys from which it follows who is due when; an edit of another key computes nothing anew.
_TARGETING = ("when", "target", "jitter", "on_failure", "job_id")


def publish_schedule(
    manifest: ScheduleManifest, job: Job, *, set_name: str, now: datetime
) -> Published[Schedule]:
    """Store a schedule and arm it: due times, targets, and a look at it as soon as may be."""
    schedule = Schedule.objects.with_slug(manifest.id).select_for_update(no_key=True).first()
    document = to_document(manifest)
    before = schedule.manifest if schedule else None
    schedule = schedule or Schedule(slug=manifest.id, created_at=now)
    old = _Standing.of(schedule, exists=before is not None)
    changed = old.fingerprint != fingerprint(document)
    schedule.set_name = set_name or schedule.set_name
    if changed:
        _fill(schedule, manifest, job, document)
        _arm(schedule, manifest, old, now)
    if changed:
        schedule.updated_at = now
    schedule.save()
    if changed:
        _follow_up(schedule, old, document, now)
    return Published(schedule, change_of(before, changed=changed), before, document)


@dataclass(frozen=True, slots=True)
class _Standing:
    """A schedule as it was before the edit."""

    fingerprint: str
    timing: str
    enabled: bool
    runs_on_agent: bool
    targeting: tuple[object, ...]

    @classmethod
    def of(cls, schedule: Schedule, *, exists: bool) -> "_Standing":
        return cls(
            schedule.fingerprint,
            schedule.timing_fingerprint,
            exists and schedule.enabled,
            schedule.runs_on_agent,
            _targeting(schedule.manifest),
        )


def _targeting(document: object) -> tuple[object, ...]:
    return tuple(document.get(key) for key in _TARGETING) if isinstance(document, dict) else ()


def _fill(
    schedule: Schedule,
    manifest: ScheduleManifest,
    job: Job,
    document: dict[str, object],
) -> None:
    schedule.job = job
    schedule.manifest = document
    schedule.fingerprint = fingerprint(document)
    schedule.timing_fingerprint = fingerprint({"when": document["when"], "tz": manifest.tz})
    schedule.shape = _SHAPES[type(manifest.when)]
    schedule.runs_on_agent = manifest.runs_on is RunsOn.AGENT
    schedule.enabled = manifest.enabled


def _arm(schedule: Schedule, manifest: ScheduleManifest, old: _Standing, now: datetime) -> None:
    """Put the next nominal time, from now on, unless the one that stands is still right."""
    if not isinstance(manifest.when, Calendar) or schedule.runs_on_agent:
        schedule.next_fire_at = schedule.settled_until = None
        return
    was_armed = old.enabled and not old.runs_on_agent
    if was_armed and old.timing == schedule.timing_fingerprint:
        return
    # What fell due while it was off, or by the old times, is nobody's debt.
    tz = manifest.zone(local_zone())
    schedule.next_fire_at = calendar.next_fire(manifest.when, now, tz)
    schedule.settled_until = now


def _follow_up(
    schedule: Schedule, old: _Standing, document: dict[str, object], now: datetime
) -> None:
    own = Schedule.objects.filter(pk=schedule.pk)
    if schedule.shape in RECONCILE and not schedule.runs_on_agent:
        newly = schedule.enabled and not old.enabled
        if newly or old.runs_on_agent or old.targeting != _targeting(document):
            mark_targets(own, now=now)
    else:
        ScheduleAgent.objects.filter(schedule=schedule).delete()
    look_again(own, now=now)
    if old.runs_on_agent and not schedule.runs_on_agent:
        wake_everybody()
