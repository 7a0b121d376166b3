"""Whether a schedule fires on this PC now: the server's own gates, asked of one candidate."""

import zlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from fleet.agent.bundle import LocalSchedule
from fleet.agent.claims import SLACK, Claim
from fleet.agent.gate import Freeze
from fleet.rules import calendar
from fleet.rules.bounds import read_active
from fleet.rules.deadlines import deadline_of, wait_for_start
from fleet.rules.fanout import Terms, Timetable, drawn_delay, seed_of
from fleet.rules.firing import Candidate, JobFacts, Reason, Skip, Snapshot, decide
from fleet.rules.freeze import FreezeState
from fleet.rules.suppression import suppression_window
from fleet.rules.when import Calendar, PerTarget
from scheduler.rules import misfire

_ME = 1


@dataclass(frozen=True, slots=True)
class Fire:
    """Start the job: for which nominal time, and between which times (aware, UTC)."""

    nominal: datetime
    start_after: datetime
    deadline_at: datetime
    ttl: timedelta


@dataclass(frozen=True, slots=True)
class Rest:
    """Do not fire, and why; nominal times up to `looked_at` are dealt with by it."""

    reason: Reason
    looked_at: datetime | None = None


def judge(
    schedule: LocalSchedule,
    claim: Claim,
    *,
    now: datetime,
    local: ZoneInfo,
    freeze: Freeze,
    is_alive: bool,
    agent_id: str,
) -> Fire | Rest:
    """Decide about one schedule at `now`; `is_alive` = a run of it is queued or going on.

    A nominal time that meets a closed gate is over. One that meets a run of its own schedule waits
    for it, and then counts as late, which the schedule's `misfire` judges.
    """
    when, job = schedule.manifest.when, schedule.job
    if isinstance(when, PerTarget):
        # One PC cannot know what the others of the target did.
        return Rest(Reason.NO_TARGET)
    nominal = now
    if isinstance(when, Calendar):
        due = _due(schedule, when, claim, now, local)
        if isinstance(due, Rest):
            return due
        nominal = due
    running = is_alive or claim.is_in_flight(now)
    verdict = decide(_snapshot(schedule, claim, now, local, freeze, running=running))
    if isinstance(verdict, Skip):
        return Rest(verdict.reason, nominal if isinstance(when, Calendar) else None)
    if running or job is None:
        return Rest(Reason.IN_FLIGHT if running else Reason.JOB_MISSING)
    return _fire(schedule, nominal, now, local, agent_id)


def ttl_of(schedule: LocalSchedule) -> timedelta:
    """How long a fire may take in all; after that nobody believes in it any more."""
    manifest, job = schedule.manifest, schedule.job
    run = job.execute.timeout if job else timedelta()
    retries = manifest.retry.budget(run) if manifest.retry else timedelta()
    return manifest.jitter + run + retries + SLACK


def _snapshot(
    schedule: LocalSchedule,
    claim: Claim,
    now: datetime,
    local: ZoneInfo,
    freeze: Freeze,
    *,
    running: bool,
) -> Snapshot:
    manifest, job = schedule.manifest, schedule.job
    me = Candidate(
        _ME,
        success=claim.success,
        last_dispatched_at=claim.fired_at,
        failures=claim.failures,
        last_failed_at=claim.failed_at,
        in_flight=running,
    )
    return Snapshot(
        now=now,
        when=manifest.when,
        freeze=FreezeState(frozen=freeze.covers(now), reason=freeze.reason),
        window=_window(schedule),
        job=JobFacts(job.version, is_revoked=schedule.is_revoked) if job else None,
        timetable=_timetable(schedule, local),
        is_enabled=manifest.enabled,
        backs_off=manifest.on_failure_backoff,
        roster=1,
        candidates=(me,),
    )


def _window(schedule: LocalSchedule) -> timedelta:
    manifest, job = schedule.manifest, schedule.job
    return suppression_window(manifest.jitter, job.execute.timeout if job else None, manifest.retry)


def _timetable(schedule: LocalSchedule, local: ZoneInfo) -> Timetable:
    manifest = schedule.manifest
    tz = manifest.zone(local)
    return Timetable(manifest.constraints.hours, read_active(manifest.active, tz), tz)


def _due(
    schedule: LocalSchedule, when: Calendar, claim: Claim, now: datetime, local: ZoneInfo
) -> datetime | Rest:
    """The nominal time that is to fire now by the schedule's misfire policy, if any."""
    tz = schedule.manifest.zone(local)

    def next_after(moment: datetime) -> datetime | None:
        return calendar.next_fire(when, moment, tz)

    first = next_after(claim.looked_at) if claim.looked_at is not None else None
    if first is None or first > now:
        return Rest(Reason.ALL_DONE)
    policy = misfire.Misfire(schedule.manifest.misfire.value)
    chosen = misfire.decide(policy, first, next_after, now=now)
    if isinstance(chosen, misfire.SkipIt):
        return Rest(Reason.ALL_DONE, looked_at=now)
    return chosen.occurrence_at


def _fire(
    schedule: LocalSchedule, nominal: datetime, now: datetime, local: ZoneInfo, agent_id: str
) -> Fire:
    manifest = schedule.manifest
    opening = _timetable(schedule, local).opening_at(now)
    muted = None if isinstance(manifest.when, Calendar) else _window(schedule)
    wait = wait_for_start(manifest.starting_deadline, suppression=muted)
    terms = Terms(manifest.jitter, wait, seed_of(manifest.id))
    # The PC's own share of the jitter, the same at every fire.
    number = zlib.crc32(agent_id.encode())
    start = opening.due_at + drawn_delay(number, seed=terms.seed, span=terms.span(opening))
    deadline = deadline_of(start, wait=wait, closes_at=opening.closes_at)
    return Fire(nominal, start, deadline, ttl_of(schedule))
