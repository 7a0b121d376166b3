"""What a runner has in hand: claims whose bodies run, endings to write, hooks to call."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from django.db import DatabaseError, DataError, IntegrityError, InterfaceError, OperationalError

from scheduler.engine import hooks, reap
from scheduler.engine.executors.threads import Threads
from scheduler.engine.finish import Finished, finish
from scheduler.engine.hooks import HookCall
from scheduler.models import Runner, Task
from scheduler.rules.claims import Claim, Ending
from scheduler.rules.outcomes import Failed
from scheduler.rules.states import TaskState
from scheduler.rules.texts import clean_text


@dataclass(slots=True)
class Hand:
    """The work of one runner. Only its loop touches it."""

    runner: Runner
    executor: Threads
    claims: dict[int, Claim] = field(default_factory=dict)
    # Kept until their write is known to have happened.
    unwritten: list[Ending] = field(default_factory=list)
    calling: dict[int, HookCall] = field(default_factory=dict)
    called: list[HookCall] = field(default_factory=list)
    returning: list[Claim] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether nothing runs and nothing is to be written."""
        return not (self.claims or self.unwritten or self.calling)

    @property
    def ahead(self) -> int:
        """How many claims wait for a thread."""
        return max(0, len(self.claims) - self.executor.workers)

    def by_kind(self) -> Counter[str]:
        """Count the claims of each kind."""
        return Counter(one.kind for one in self.claims.values())

    def take(self, claims: Iterable[Claim]) -> None:
        """Have bodies run."""
        taken = {one.task_id: one for one in claims}
        self.claims |= taken
        self.executor.submit(taken.values())

    def call(self, calls: Iterable[HookCall]) -> None:
        """Have hooks called."""
        found = {one.task_id: one for one in calls}
        self.calling |= found
        self.executor.submit(found.values())

    def write_ended(self, *, now: datetime) -> None:
        """Write what ended since the last pass, all of it in one transaction."""
        ended = self.executor.collect()
        self.unwritten += ended.bodies
        self.called += ended.hooks
        while self.called:
            hooks.settled(self.called[0], now=now)
            self.calling.pop(self.called.pop(0).task_id, None)
        self.give_back(ended.not_begun, now=now)
        if not self.unwritten:
            return
        try:
            report = finish(self.unwritten, runner_name=self.runner.name, now=now)
        except (OperationalError, InterfaceError):
            # The connection, not the rows: all of them again, when it is back.
            raise
        except DatabaseError:
            report = self._write_one_by_one(now=now)
        for ending in self.unwritten:
            self.claims.pop(ending.claim.task_id, None)
        self.unwritten = []
        self.call(report.hooks)

    def _write_one_by_one(self, *, now: datetime) -> Finished:
        """Write what can be written; what the database refuses has failed, with its reason."""
        report = Finished()
        for ending in self.unwritten:
            try:
                one = finish([ending], runner_name=self.runner.name, now=now)
            except (DataError, IntegrityError) as error:
                refused = Failed(clean_text(f"could not be stored: {error}"), permanent=True)
                again = replace(ending, ended=refused)
                one = finish([again], runner_name=self.runner.name, now=now)
            report.hooks += one.hooks
        return report

    def give_back(self, claims: Iterable[Claim], *, now: datetime) -> None:
        """Return claims to the queue; their attempt does not count."""
        # Those that the database did not take the last time as well: no thread has them any more.
        self.returning += claims
        reap.give_back([(one.task_id, one.token) for one in self.returning], now=now)
        for one in self.returning:
            self.claims.pop(one.task_id, None)
        self.returning = []

    def recover(self, *, now: datetime) -> None:
        """After a broken connection: hold what the database says, not what was hoped for."""
        rows = Task.objects.filter(state=TaskState.RUNNING.value, runner_id=self.runner.pk)
        known = {one.task_id: one.token for one in self.claims.values()}
        unknown = [
            (task_id, token)
            for task_id, token in rows.values_list("pk", "lease_token")
            if known.get(task_id) != token
        ]
        reap.give_back(unknown, now=now)
        hooks.let_go(self.runner.pk, keep=self.calling)
