"""What a body is called with, what it may answer, and the retry policy."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, final

MOST_RETRIES = 65_535
# What an integer column holds on every database: 68 years.
LONGEST_DELAY = 2_147_483_647


@dataclass(frozen=True, slots=True)
class Fire:
    """One run of a task, as its handler sees it.

    `attempt` counts the starts for this piece of work from 1. `occurrence_at` is the nominal time
    of a recurring task, None for a run that somebody asked for. `now` is the runner's clock at the
    start.
    """

    task_id: int
    kind: str
    key: str | None
    input: object
    attempt: int
    due_at: datetime
    occurrence_at: datetime | None
    now: datetime


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a failed run is tried again, and the delay in seconds.

    `times` counts the retries after the first run. The delay starts at `min`, doubles each time and
    stops growing at `max`.
    """

    times: int = 10
    min: int = 60
    max: int = 3600

    def __post_init__(self) -> None:
        """Refuse what a row could not hold."""
        for name, value, most in (
            ("times", self.times, MOST_RETRIES),
            ("min", self.min, LONGEST_DELAY),
            ("max", self.max, LONGEST_DELAY),
        ):
            if isinstance(value, bool) or not isinstance(value, int):
                raise ValueError(f"retry {name} is a whole number, not {value!r:.40}")
            if not 0 <= value <= most:
                raise ValueError(f"retry {name} is between 0 and {most}, not {value}")


class PermanentError(Exception):
    """Raised by a body: trying again cannot help."""


@final
class Nothing:
    """The type of NOTHING."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Say the name under which it is exported."""
        return "NOTHING"


# Returned by a body that found nothing to do: its run leaves no row in the history.
NOTHING: Final = Nothing()
