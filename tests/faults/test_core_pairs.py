"""Two acts on one task, each with what it knew before the other: one winner, whoever is first.

F-18: all pairs, so both orders. A task that was cancelled last never starts again.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from scheduler import public
from scheduler.engine import reap
from scheduler.engine.claim import claim_suspect
from scheduler.engine.prune import prune_tasks
from scheduler.models import Dependency, Run, Task
from scheduler.registry import REGISTRY
from scheduler.rules.claims import Claim
from scheduler.rules.leases import Lease
from scheduler.rules.states import Outcome
from tests.clock import ManualClock
from tests.faults.core_invariants import held, violations
from tests.scheduler.make import Recorder, Worker, make_kind, make_runner, only_kinds

pytestmark = pytest.mark.django_db
ENDS = {"finish", "fail", "reap"}
OUTCOMES = {
    "finish": Outcome.SUCCEEDED,
    "fail": Outcome.FAILED,
    "reap": Outcome.CRASHED,
}
# The second sees that the first was there.
TOO_LATE = {("beat", "reap"), ("finish", "cancel"), ("fail", "cancel"), ("finish", "reap")}
REVIVES = {"retry", "edit"}
LONG_AFTER = timedelta(days=4000)


@dataclass
class Ring:
    """One task, a holder of its lease, a second runner, and what both know of it."""

    clock: ManualClock
    body: Recorder
    task: int
    holder: Worker
    held: Claim
    lease: Lease
    other: Worker
    taken: list[Claim] = field(default_factory=list)

    @classmethod
    def make(cls, clock: ManualClock) -> "Ring":
        """Let a runner hold the task, and two others wait for it."""
        body = Recorder()
        REGISTRY.add(make_kind("demo", body))
        holder = Worker(clock, make_runner("holder"))
        task = public.request("demo", key="k", input=1, now=clock.now)
        claimed = holder.claim_one()
        for need in (False, True):
            public.request("demo", depends_on=[task], require_success=need, now=clock.now)
        lease = Lease(task, claimed.token, 1, holder.runner.pk)
        other = Worker(clock, make_runner("other"))
        return cls(clock, body, task, holder, claimed, lease, other)

    # Each act says whether it was done; what it was refused is no error.

    def claim(self) -> bool:
        """The second runner looks, also for what has to run alone."""
        claims = self.other.claim()
        claims += claim_suspect(self.other.wish(1), now=self.clock.now)
        found = [one for one in claims if one.task_id == self.task]
        self.taken += found
        return bool(found)

    def beat(self) -> bool:
        """The holder says that it is alive."""
        self.holder.beat()
        return True

    def finish(self) -> bool:
        """The holder's body returned."""
        return not self.holder.end(self.held).lost

    def fail(self) -> bool:
        """The holder's body raised."""
        return not self.holder.fail(self.held, permanent=True).lost

    def cancel(self) -> bool:
        """A person cancels."""
        return _allowed(lambda: public.cancel(self.task, now=self.clock.now))

    def reap(self) -> bool:
        """The lease is freed, by who saw it stand still."""
        return bool(reap.free([self.lease], now=self.clock.now))

    def retry(self) -> bool:
        """A person starts it once more."""
        return _allowed(lambda: public.retry_task(self.task, now=self.clock.now))

    def edit(self) -> bool:
        """Somebody requests the key with another input."""
        task = public.request("demo", key="k", input=2, now=self.clock.now)
        return task == self.task

    def delete(self) -> bool:
        """Retention deletes what is over."""
        prune_tasks(self.clock.now + LONG_AFTER)
        return not Task.objects.filter(pk=self.task).exists()

    def let_all_end(self) -> None:
        """Let the second runner end what it took, free the rest, and run what is due."""
        for one in self.taken:
            self.other.end(one)
        running = Task.objects.filter(state="running").values_list(
            "pk", "lease_token", "beat", "runner_id"
        )
        reap.free([Lease(*row) for row in running], now=self.clock.now)
        last = Worker(self.clock, make_runner("last"))
        while True:
            ran = last.run_due()
            suspects = Task.objects.filter(ready=True, suspect=True).count()
            if suspects:
                one = last.claim_suspect()
                self.body(one.fire)
                last.end(one)
            if not ran and not suspects:
                return


def _allowed(act: Callable[[], None]) -> bool:
    try:
        act()
    except (public.TaskStateError, public.NoSuchTaskError):
        return False
    return True


ACTS = ["claim", "beat", "finish", "fail", "cancel", "reap", "retry", "edit", "delete"]


@pytest.fixture
def ring() -> Iterator[Ring]:
    with only_kinds():
        yield Ring.make(ManualClock())


@pytest.mark.parametrize("second", ACTS)
@pytest.mark.parametrize("first", ACTS)
def test_two_acts_on_a_running_task_have_one_winner(ring: Ring, first: str, second: str) -> None:
    done = [name for name in (first, second) if getattr(ring, name)()]

    ends = [OUTCOMES[name] for name in done if name in ENDS]
    # Told twice by its holder, it ended the first time, and so it stays.
    assert [run.outcome for run in Run.objects.filter(task_id=ring.task)] == ends[:1]
    assert len(ends) <= 1 or "reap" not in done
    assert (first, second) not in TOO_LATE or done == [first]
    assert violations() == {}
    began = len(ring.body.fires)
    ring.let_all_end()
    assert_it_ended_well(ring, done, began)


@pytest.mark.parametrize("second", ACTS)
@pytest.mark.parametrize("first", ACTS)
def test_a_holder_that_lost_its_lease_changes_nothing_beside_others(
    ring: Ring, first: str, second: str
) -> None:
    assert ring.reap()
    beats = Task.objects.get(pk=ring.task).beat

    done = [name for name in (first, second) if getattr(ring, name)()]

    assert not ENDS & set(done)
    if "claim" not in done:
        assert set(Task.objects.filter(pk=ring.task).values_list("beat", flat=True)) <= {beats}
    outcomes = Run.objects.filter(task_id=ring.task).values_list("outcome", flat=True)
    assert set(outcomes) <= {Outcome.CRASHED.value}
    assert violations() == {}
    began = len(ring.body.fires)
    ring.let_all_end()
    assert_it_ended_well(ring, done, began)


def assert_it_ended_well(ring: Ring, done: list[str], began: int) -> None:
    """Nothing is held, nobody waits, and what was cancelled last did not run again."""
    assert violations() == {}
    assert held() == []
    assert Dependency.objects.count() == 0
    assert not Task.objects.filter(state__in=["pending", "running"]).exists()
    if "cancel" in done and not REVIVES & set(done[done.index("cancel") :]):
        row = Task.objects.filter(pk=ring.task).first()
        assert row is None or row.state == "cancelled"
        assert [fire.task_id for fire in ring.body.fires[began:]].count(ring.task) == 0
