"""For the tests of applications: a clock that stands still, and a runner that works when told.

    with stepped(datetime(2026, 3, 2, 8, 0, tzinfo=UTC)) as scheduler:
        request("reports.nightly", key="tenant-7", cron="20 4 * * *")
        scheduler.advance_to_next("reports.nightly", key="tenant-7")
        (run,) = scheduler.run_until_idle()

Bodies run in the thread and the database connection of the test, so an ordinary test with a
transaction that is rolled back will do.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from unittest.mock import patch

from django.utils import timezone

from scheduler.engine import claim, runners, startup
from scheduler.engine.tick import tick
from scheduler.models import Run, Runner, Task
from scheduler.rules.timing import require_moment

# More than this in one go is taken for work that never ends.
MOST_BODIES = 1_000


class NeverIdleError(AssertionError):
    """Bodies ask for more work each time they run, so that there is no end to it."""


class NothingPlannedError(LookupError):
    """There is no such task, or it has no time: it waits for others, or is over."""


@dataclass(slots=True)
class FakeClock:
    """A clock that moves only when told; calling it returns its time."""

    now: datetime

    def __post_init__(self) -> None:
        """Refuse a time without a zone."""
        require_moment(self.now, "now")

    def __call__(self) -> datetime:
        """Return the time, as `timezone.now()` does."""
        return self.now


@dataclass(frozen=True, slots=True)
class Ran:
    """One run that ended. `outcome` is a word such as `succeeded` or `failed, tried again`."""

    task_id: int
    kind: str
    key: str | None
    input: object
    attempt: int
    outcome: str
    result: object
    error: str
    trace: str


@dataclass(slots=True)
class SteppedScheduler:
    """A scheduler whose time and work a test controls."""

    clock: FakeClock
    runner: Runner

    @property
    def now(self) -> datetime:
        """The time of its clock."""
        return self.clock.now

    def start(self) -> None:
        """Do what each start of a runner does: register the recurring tasks that code declared."""
        startup.set_aside_unusable(now=self.now)
        startup.register_declared(now=self.now)

    def run_until_idle(self) -> list[Ran]:
        """Run all that is due, and what becomes due by that; return the runs in their order.

        A body that found NOTHING to do leaves no run. Raises NeverIdleError.
        """
        before = Run.objects.order_by("pk").values_list("pk", flat=True).last() or 0
        bodies = 0
        while ran := tick(self.runner, self.clock, limit=MOST_BODIES).ran:
            bodies += ran
            if bodies >= MOST_BODIES:
                raise NeverIdleError(f"{bodies} bodies ran and there is still work")
        return [_ran(run) for run in Run.objects.filter(pk__gt=before).order_by("pk")]

    def advance(self, **parts: float) -> datetime:
        """Move the clock on by days, hours, minutes, seconds; nothing runs, as in a downtime."""
        self.clock.now += timedelta(**parts)
        return self.now

    def advance_to(self, moment: datetime) -> datetime:
        """Move the clock to a moment; nothing runs before that is asked for."""
        require_moment(moment, "the moment")
        self.clock.now = moment
        return self.now

    def advance_to_next(self, kind: str, key: str | None = None) -> datetime:
        """Move the clock to the next run of a task; return that time. It runs when asked for.

        Without a key it is the first that is due of the kind. Raises NothingPlannedError.
        """
        tasks = Task.objects.live().filter(kind=kind, due_at__isnull=False)
        if key is not None:
            tasks = tasks.filter(key=key)
        due_at = tasks.order_by("due_at").values_list("due_at", flat=True).first()
        if due_at is None:
            named = kind if key is None else f"{kind} {key}"
            raise NothingPlannedError(f"no run of {named} is planned")
        return self.advance_to(max(due_at, self.now))

    def run_for(self, **parts: float) -> list[Ran]:
        """Let days, hours, minutes, seconds pass with a runner at work; return the runs."""
        end = self.now + timedelta(**parts)
        found = self.run_until_idle()
        while (due_at := claim.next_due()) is not None and due_at <= end:
            self.advance_to(max(due_at, self.now))
            found += self.run_until_idle()
        self.advance_to(end)
        return found


@contextmanager
def stepped(now: datetime | None = None) -> Iterator[SteppedScheduler]:
    """Stop the time of `django.utils.timezone.now` at `now`, or where it is, and step through it.

    A module that imported the function by its name keeps the real one.
    """
    clock = FakeClock(now or timezone.now())
    with patch.object(timezone, "now", clock):
        yield SteppedScheduler(clock, runners.sign_on("test", workers=1, queues=None))


def _ran(run: Run) -> Ran:
    return Ran(
        task_id=run.task_id,
        kind=run.kind,
        key=run.key,
        input=run.input,
        attempt=run.attempt,
        outcome=run.outcome,
        result=run.result,
        error=run.error,
        trace=run.trace,
    )
