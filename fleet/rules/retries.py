"""`on_failure.retry`: how often an agent tries again within one run."""

from dataclasses import dataclass
from datetime import timedelta

MAX_RETRIES = 10
LEAST_BACKOFF, MOST_BACKOFF = timedelta(seconds=1), timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """`max` additional attempts after the first, a fixed `backoff` apart."""

    max: int
    backoff: timedelta

    @property
    def backoff_seconds(self) -> int:
        """The wait as agents are told it: whole seconds, the fraction cut."""
        return self.backoff // timedelta(seconds=1)

    @property
    def attempts(self) -> int:
        """How often the script may start at most."""
        return self.max + 1

    def budget(self, timeout: timedelta) -> timedelta:
        """The time that all retries may take beyond the first attempt."""
        return self.max * (timeout + timedelta(seconds=self.backoff_seconds))
