"""The scheduler in plain Python, written from its promises and not from its code.

One process, one runner at a time, no database: a dictionary of tasks and a clock.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

PERIOD = timedelta(minutes=5)
# What staff may type instead of it.
OTHER_PERIOD = timedelta(minutes=10)
ALMOST = timedelta(seconds=90)
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
LIVE = ("pending", "running", "quarantined")
PAUSES = [timedelta(0), timedelta(0), timedelta(seconds=30)]


def next_occurrence(after: datetime, period: timedelta) -> datetime:
    """The first multiple of the period after `after`."""
    return EPOCH + ((after - EPOCH) // period + 1) * period


@dataclass
class Held:
    """What a claim saw."""

    token: int
    input: object
    retries: int | None
    occurrence: datetime | None


@dataclass
class Task:
    """One task as the model knows it."""

    id: int
    key: str
    input: object
    retries: int | None
    due: datetime | None
    wanted: datetime | None = None
    recurs: bool = False
    period: timedelta = PERIOD
    occurrence: datetime | None = None
    extra: bool = False
    state: str = "pending"
    count: int = 0
    attempt: int = 0
    waits: set[int] = field(default_factory=set)
    fresh: list[object] = field(default_factory=list)
    rerun: bool = False
    rerun_at: datetime | None = None
    cancelling: bool = False
    suspect: bool = False
    crashes: int = 0
    tokens: int = 0
    held: Held | None = None

    def next_occurrence(self, after: datetime) -> datetime:
        """When it recurs next."""
        return next_occurrence(after, self.period)

    def place(self, wanted: datetime | None, now: datetime) -> None:
        """Due at `wanted`, at once if nobody said when, or later when it waits for others."""
        self.state, self.wanted = "pending", wanted
        self.due = None if self.waits else wanted or now

    def over(self, state: str) -> None:
        """The end."""
        self.state, self.due, self.rerun, self.held = state, None, False, None
        self.waits = set()


class Scheduler:
    """All tasks."""

    def __init__(self) -> None:
        """Nothing was asked for yet."""
        self.tasks: dict[int, Task] = {}
        self.paused = False

    def live(self, key: str) -> Task | None:
        """The task that has the key."""
        found = [one for one in self.tasks.values() if one.key == key and one.state in LIVE]
        assert len(found) <= 1
        return found[0] if found else None

    def request(
        self,
        task_id: int,
        key: str,
        value: object,
        *,
        retries: int | None,
        delay: timedelta | None,
        recurs: bool,
        waits: set[int],
        coalesce: bool = False,
        now: datetime,
    ) -> None:
        """Somebody asks; `task_id` is what the real one answered."""
        task = self.live(key)
        if task is not None and task.state == "running" and coalesce:
            assert task.id == task_id
            return
        open_ = {one for one in waits if self.tasks[one].state in LIVE}
        at = None if delay is None else now + delay
        if task is None:
            task = Task(task_id, key, value, retries, None, waits=open_)
            self.tasks[task_id] = task
            self._start(task, recurs, at, now)
            return
        assert task.id == task_id
        task.retries, task.waits = retries, open_
        if task.state == "running":
            task.fresh = [value]
            task.recurs, task.cancelling = task.recurs or recurs, False
            if not recurs:
                task.rerun, task.rerun_at = True, at
            return
        task.input = value
        if task.state == "quarantined":
            task.recurs = task.recurs or recurs
        elif recurs and task.recurs:
            task.place(task.due or task.wanted, now)
        elif recurs or not task.recurs:
            self._start(task, recurs, at, now)
        else:
            self._extra(task, at, now)

    def _start(self, task: Task, recurs: bool, at: datetime | None, now: datetime) -> None:
        task.count = task.attempt = 0
        task.recurs = recurs
        if recurs:
            task.occurrence = task.next_occurrence(now)
            task.place(task.occurrence, now)
        else:
            task.place(at, now)

    def _extra(self, task: Task, at: datetime | None, now: datetime) -> None:
        asked = at or now
        if task.waits or task.count or not task.occurrence or asked <= task.occurrence:
            task.extra = task.extra or not task.count
            task.count = task.attempt = 0
            task.place(at, now)
        else:
            task.extra, task.rerun, task.rerun_at = False, True, asked
            task.place(task.occurrence, now)

    def next_claim(self, now: datetime, *, suspect: bool) -> Task | None:
        """Who is taken next."""
        if self.paused:
            return None
        ready = [
            one for one in self.tasks.values()
            if one.state == "pending" and one.due and one.due <= now and one.suspect == suspect
        ]  # fmt: skip
        return min(ready, key=lambda one: (one.due, one.id), default=None)

    def claim(self, task: Task, now: datetime) -> None:
        """A runner takes it."""
        assert task.due is not None
        task.attempt += 1
        task.tokens += 1
        first = task.attempt == 1 and not task.count and not task.extra
        if task.recurs and first and task.occurrence and now - task.due > ALMOST:
            grace = (task.next_occurrence(task.occurrence) - task.occurrence) / 2
            if now - task.occurrence > grace:
                last = task.next_occurrence(now) - task.period
                task.occurrence = max(task.occurrence, last)
        task.state = "running"
        task.held = Held(task.tokens, task.input, task.retries, task.occurrence)

    def succeed(self, task: Task, now: datetime) -> None:
        """The body returned."""
        again = task.rerun and not task.cancelling
        self._cleared(task)
        if task.cancelling:
            task.over("cancelled")
        elif not task.rerun and not task.recurs:
            task.over("finished")
        else:
            self._go_on(task, now)
        task.cancelling, task.fresh = False, []
        if not again:
            self._settle(task, now)

    def fail(self, task: Task, now: datetime, *, permanent: bool) -> None:
        """The body raised."""
        assert task.held is not None
        allowed = task.held.retries
        self._cleared(task)
        if task.cancelling:
            task.over("cancelled")
        elif not permanent and allowed is not None and task.count < allowed:
            due = now + timedelta(seconds=60)
            if task.rerun and task.rerun_at:
                due = max(due, task.rerun_at)
            self._renew(task)
            task.count, task.rerun = task.count + 1, False
            task.place(due, now)
            return
        elif task.recurs:
            self._renew(task)
            task.rerun = False
            self._recur(task, now)
        else:
            task.over("failed")
        task.cancelling, task.fresh = False, []
        self._settle(task, now)

    def lose(self, now: datetime) -> None:
        """The runner dies with all it holds."""
        running = [one for one in self.tasks.values() if one.state == "running"]
        for task in running:
            alone = len(running) == 1
            if task.suspect or alone:
                task.crashes += 1
            task.suspect = True
            self._put_back(task, now, None if task.crashes >= 3 else PAUSES[task.crashes])

    def give_back(self, task: Task, now: datetime) -> None:
        """The runner stops; nothing happened."""
        task.attempt -= 1
        self._put_back(task, now, timedelta(0))

    def _put_back(self, task: Task, now: datetime, pause: timedelta | None) -> None:
        task.held = None
        if task.cancelling:
            task.over("cancelled")
            task.cancelling, task.fresh = False, []
            self._settle(task, now)
            return
        self._renew(task)
        rerun_at = task.rerun_at if task.rerun else None
        task.rerun = False
        if pause is None:
            task.state, task.due = "quarantined", None
            return
        assert task.due is not None
        due = now + pause if pause else task.due
        task.place(max(due, rerun_at) if rerun_at else due, now)

    def cancel(self, task: Task, now: datetime) -> None:
        """Somebody wants it never to run again."""
        if task.state == "running":
            task.cancelling, task.rerun = True, False
            return
        task.over("cancelled")
        self._settle(task, now)

    def release(self, task: Task, now: datetime) -> None:
        """Somebody lets it out of quarantine."""
        task.suspect, task.crashes, task.extra = False, 0, False
        task.count = task.attempt = 0
        if task.recurs:
            task.occurrence = task.next_occurrence(now)
        task.place(task.occurrence if task.recurs and task.occurrence else now, now)

    def retry(self, task: Task, now: datetime) -> None:
        """Somebody wants a task that is over once more."""
        task.waits = set()
        self.release(task, now)

    def run_now(self, task: Task, now: datetime) -> None:
        """Somebody wants it to run at once, or once more when it runs."""
        if task.state == "running":
            task.rerun, task.rerun_at, task.cancelling = True, None, False
            return
        task.extra = task.extra or (task.recurs and not task.count)
        task.count = task.attempt = 0
        task.place(now, now)

    def edit_due(self, task: Task, at: datetime) -> None:
        """Somebody moves the next run."""
        task.place(at, at)

    def edit_period(self, task: Task, period: timedelta, now: datetime) -> None:
        """Somebody types another cron, or takes that back."""
        changed, task.period = task.period != period, period
        if not changed or task.state == "quarantined":
            return
        if task.state == "running":
            # The occurrence that it waited for beside this extra run was the old cron's.
            task.occurrence = None if task.extra else task.occurrence
            return
        task.occurrence = task.next_occurrence(now)
        if task.extra and task.due:
            return
        task.count = task.attempt = 0
        task.place(task.occurrence, now)

    def _cleared(self, task: Task) -> None:
        task.suspect, task.crashes, task.held = False, 0, None

    def _renew(self, task: Task) -> None:
        if task.fresh:
            task.input = task.fresh.pop()

    def _go_on(self, task: Task, now: datetime) -> None:
        self._renew(task)
        asked = (task.rerun_at or now) if task.rerun else None
        if task.recurs:
            self._recur(task, now)
            assert task.occurrence is not None
            if asked is None or task.occurrence < asked:
                return
        task.extra = task.recurs
        task.count = task.attempt = 0
        task.rerun = False
        task.place(task.rerun_at, now)

    def _recur(self, task: Task, now: datetime) -> None:
        if not (task.extra and task.occurrence):
            task.occurrence = task.next_occurrence(max(now, task.occurrence or now))
        task.extra = False
        task.count = task.attempt = 0
        task.place(task.occurrence, now)

    def _settle(self, ended: Task, now: datetime) -> None:
        for task in self.tasks.values():
            if ended.id in task.waits:
                task.waits.discard(ended.id)
                if not task.waits and task.state == "pending":
                    task.due = max(task.wanted or now, now)
