"""The columns of a task that rules decide about, with their types."""

from datetime import datetime
from typing import TypedDict

from scheduler.rules.states import Reason, TaskState


class Changes(TypedDict, total=False):
    """New values by column; what is not named stays."""

    state: TaskState
    reason: Reason
    input: object
    queue: str
    priority: int
    due_at: datetime | None
    not_before: datetime | None
    ready: bool
    cron: str | None
    cron_override: str | None
    tz: str
    day_rule: str
    misfire: str
    occurrence_at: datetime | None
    extra: bool
    missed: int
    retry_times: int | None
    retry_min: int | None
    retry_max: int | None
    retry_count: int
    attempt: int
    replaced: bool
    next_input: object
    rerun: bool
    rerun_not_before: datetime | None
    dropped: int
    cancelling: bool
    waits_for: int
    suspect: bool
    crash_count: int
    body_started: bool
    last_error: str
    result: object
    ended_at: datetime | None
