"""What a decision about one schedule rests on: facts only, gathered by the caller."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from fleet.rules.cooldown import LONG_AGO, Success
from fleet.rules.fanout import Timetable
from fleet.rules.firing.reasons import Reason
from fleet.rules.freeze import FreezeState
from fleet.rules.when import When


@dataclass(frozen=True, slots=True)
class JobFacts:
    """The job as it stands."""

    version: str = ""
    is_revoked: bool = False
    # Whether any revision may run; the newest approved one does.
    has_runnable_revision: bool = True


@dataclass(frozen=True, slots=True)
class Candidate:
    """One agent of the target."""

    agent: int
    is_alive: bool = True
    success: Success | None = None
    last_dispatched_at: datetime | None = None
    failures: int = 0
    last_failed_at: datetime | None = None
    in_flight: bool = False
    # Orders those who are wanted: whoever has waited longest goes first.
    due_at: datetime = LONG_AGO


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One schedule, its job, the freeze and the agents that may be due, at one moment."""

    now: datetime
    when: When
    freeze: FreezeState
    # The suppression window of this schedule and its job.
    window: timedelta
    job: JobFacts | None = field(default_factory=JobFacts)
    timetable: Timetable = field(default_factory=Timetable)
    is_enabled: bool = True
    runs_on_agent: bool = False
    unreadable_deadline: str | None = None
    has_target: bool = True
    # Agents of the target, alive or not; None = nobody counted them.
    roster: int | None = None
    is_computing: bool = False
    # Whether machines that keep failing are asked less often.
    backs_off: bool = True
    max_concurrent: int | None = None
    # The job's commands from dispatch to end; None = they could not be counted.
    open_commands: int | None = 0
    candidates: tuple[Candidate, ...] = ()
    # There are more candidates like these than were gathered.
    has_more: bool = False
    # How many agents that are not among the candidates stop at which gate.
    others: Mapping[Reason, int] = field(default_factory=dict)
    # When the first of those others is due again.
    others_due_at: datetime | None = None
    # `per_target`: the newest success of any agent of the roster, and the schedule's own mark.
    target_success: Success | None = None
    target_dispatched_at: datetime | None = None
    # Calendars: whether a nominal time is due, and when the next one is.
    is_due: bool = True
    next_fire_at: datetime | None = None
    # A person fires it now: the gates of `IGNORED_BY_HAND` are passed over.
    by_hand: bool = False
