"""Stored manifests as values. Parsing is remembered: a tick reads the same ones every minute."""

from functools import lru_cache
from zoneinfo import ZoneInfo

from django.conf import settings

from fleet.models import JobRevision, Schedule
from fleet.rules.bounds import read_active
from fleet.rules.fanout import Timetable
from fleet.rules.manifest import JobManifest, ScheduleManifest, parse_job, parse_schedule
from fleet.rules.rearming import Terms
from fleet.rules.suppression import suppression_window
from scheduler.rules.zones import zone


def local_zone() -> ZoneInfo:
    """The zone that `tz: local` means on the server."""
    return zone(settings.TIME_ZONE)


class _Kept:
    """A document that counts as equal to any other with the same fingerprint."""

    __slots__ = ("document", "fingerprint")

    def __init__(self, fingerprint: str, document: object) -> None:
        self.fingerprint = fingerprint
        self.document = document

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Kept) and other.fingerprint == self.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)


@lru_cache(maxsize=20_000)
def _schedule(kept: _Kept) -> ScheduleManifest:
    return parse_schedule(kept.document)


@lru_cache(maxsize=5_000)
def _job(kept: _Kept) -> JobManifest:
    return parse_job(kept.document)


def schedule_manifest(schedule: Schedule) -> ScheduleManifest:
    """The schedule's manifest; ManifestError where the stored one is not valid (any more)."""
    return _schedule(_Kept(schedule.fingerprint, schedule.manifest))


def job_manifest(revision: JobRevision) -> JobManifest:
    """The revision's manifest; ManifestError where the stored one is not valid (any more)."""
    return _job(_Kept(revision.sha256, revision.manifest))


def timetable_of(manifest: ScheduleManifest) -> Timetable:
    """The opening hours and the active period, in the schedule's zone."""
    tz = manifest.zone(local_zone())
    return Timetable(manifest.constraints.hours, read_active(manifest.active, tz), tz)


def terms_of(manifest: ScheduleManifest, revision: JobRevision | None) -> Terms:
    """When machines under the schedule are due again; without a revision nothing ever runs."""
    timeout = job_manifest(revision).execute.timeout if revision else None
    return Terms(
        when=manifest.when,
        version=revision.version if revision else "",
        window=suppression_window(manifest.jitter, timeout, manifest.retry),
        backs_off=manifest.on_failure_backoff,
    )
