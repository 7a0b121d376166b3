"""Describe a task step by step and request it with one terminal call.

Unlike keyword arguments, later calls override earlier ones: a time after `cron` is the first run.
"""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Self

from scheduler.rules.fire import Retry

Request = Callable[..., int]
MOST_HOUR, MOST_MINUTE, MOST_WEEKDAY = 23, 59, 6


class BuilderError(ValueError):
    """A builder was used twice, or with an argument that means nothing."""


class TaskBuilder:
    """A task being described. One terminal call ends it."""

    def __init__(self, request: Request, kind: str, input: object = None) -> None:
        """Describe a task of `kind` that `request` will be asked for."""
        self._request = request
        self._kind = kind
        self._used = False
        self._options: dict[str, object] = {"input": input}
        self._dependencies: list[int] = []

    def key(self, key: str) -> Self:
        """One live task per key; an empty text is a key."""
        return self._with(key=key)

    def schedule_at(self, at: datetime) -> Self:
        """Run at this time, or later."""
        return self._with(at=at, after=None)

    def schedule_after(self, delay: timedelta | float) -> Self:
        """Run after this delay: a timedelta or seconds."""
        return self._with(after=delay, at=None)

    def depend_on(self, task_ids: Iterable[int]) -> Self:
        """Wait for these tasks, and no others named before."""
        self._open()
        self._dependencies = list(task_ids)
        return self

    def depends_on(self, task_id: int) -> Self:
        """Wait for this task too."""
        self._open()
        self._dependencies.append(task_id)
        return self

    def with_retry(self, policy: Retry) -> Self:
        """Try again when a run fails."""
        return self._with(retry=policy)

    def cron(self, text: str) -> Self:
        """Recur; times asked for before this are forgotten."""
        return self._with(cron=text, at=None, after=None)

    def daily_at(self, hour: int, minute: int) -> Self:
        """Recur each day at this time."""
        _require_range("the hour", hour, MOST_HOUR)
        _require_range("the minute", minute, MOST_MINUTE)
        return self.cron(f"{minute} {hour} * * *")

    def weekly_at(self, weekday: int, hour: int, minute: int) -> Self:
        """Recur each week on this day: 0 is Sunday, 6 is Saturday."""
        _require_range("the weekday", weekday, MOST_WEEKDAY)
        _require_range("the hour", hour, MOST_HOUR)
        _require_range("the minute", minute, MOST_MINUTE)
        return self.cron(f"{minute} {hour} * * {weekday}")

    def run_on_startup(self) -> Self:
        """Run a recurring task when it is registered, if an occurrence was missed or is new."""
        return self._with(run_on_startup=True)

    def tz(self, name: str) -> Self:
        """Read the cron in this zone."""
        return self._with(tz=name)

    def priority(self, priority: int) -> Self:
        """Go before tasks of lower priority: -100 to 100."""
        return self._with(priority=priority)

    def queue(self, name: str) -> Self:
        """Wait in this queue."""
        return self._with(queue=name)

    def schedule(self) -> int:
        """Request it as described; return the task's id."""
        self._open()
        self._used = True
        return self._request(self._kind, depends_on=self._dependencies, **self._options)

    def now(self) -> int:
        """Request it as described: now, unless a time or a cron was named."""
        return self.schedule()

    def at(self, at: datetime) -> int:
        """Request it for this time."""
        return self.schedule_at(at).schedule()

    def after(self, delay: timedelta | float) -> int:
        """Request it after this delay: a timedelta or seconds."""
        return self.schedule_after(delay).schedule()

    def after_task(self, task_id: int) -> int:
        """Request it after this task, and after those named before."""
        return self.depends_on(task_id).schedule()

    def with_automatic_retry(self) -> int:
        """Request it with the default policy: 10 retries, 60 s to an hour apart."""
        return self.with_retry(Retry()).schedule()

    def _with(self, **options: object) -> Self:
        self._open()
        self._options |= options
        return self

    def _open(self) -> None:
        if self._used:
            raise BuilderError("this task was requested already; describe a new one")


def _require_range(what: str, value: object, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise BuilderError(f"{what} is a whole number from 0 to {most}, not {value!r:.40}")
