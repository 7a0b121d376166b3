"""A clock that moves only when told."""

from datetime import UTC, datetime, timedelta

START = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)


class ManualClock:
    """Wall clock and monotonic clock of a test. A jump moves the wall clock alone."""

    def __init__(self, now: datetime = START) -> None:
        self.now = now
        self.ticks = 1000.0

    def __call__(self) -> datetime:
        """Return the wall clock, as code that is given a clock reads it."""
        return self.now

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return self.ticks

    def advance(self, seconds: float = 0, **parts: float) -> datetime:
        """Let time pass; return the new time."""
        passed = timedelta(seconds=seconds, **parts)
        self.now += passed
        self.ticks += passed.total_seconds()
        return self.now

    def jump(self, seconds: float = 0, **parts: float) -> datetime:
        """Set the wall clock, as an administrator does."""
        self.now += timedelta(seconds=seconds, **parts)
        return self.now

    def set(self, now: datetime) -> datetime:
        """Set the wall clock to a moment."""
        self.now = now
        return self.now
