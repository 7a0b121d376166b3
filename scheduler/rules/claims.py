"""A claimed task: the snapshot that its run is judged by."""

from dataclasses import dataclass
from datetime import datetime

from scheduler.rules.fire import Fire, Retry
from scheduler.rules.misfire import Misfire
from scheduler.rules.outcomes import Ended
from scheduler.rules.timing import Recurrence


@dataclass(frozen=True, slots=True)
class Claim:
    """One task under lease `token`, as it was when it was claimed."""

    task_id: int
    token: int
    kind: str
    key: str | None
    input: object
    priority: int
    due_at: datetime
    not_before: datetime | None
    attempt: int
    occurrence_at: datetime | None
    extra: bool
    recurrence: Recurrence | None
    misfire: Misfire
    retry: Retry | None
    retry_count: int
    generation: int
    started_at: datetime

    @property
    def fire(self) -> Fire:
        """What its handler is called with."""
        return Fire(
            task_id=self.task_id,
            kind=self.kind,
            key=self.key,
            input=self.input,
            attempt=self.attempt,
            due_at=self.due_at,
            occurrence_at=None if self.extra else self.occurrence_at,
            now=self.started_at,
        )

    @property
    def is_first_try(self) -> bool:
        """Whether nobody began this piece of work before; a repetition is never late."""
        return self.attempt == 1 and self.retry_count == 0 and not self.extra


@dataclass(frozen=True, slots=True)
class Ending:
    """A claim whose body ended, and how."""

    claim: Claim
    ended: Ended
    ended_at: datetime
