"""What is killed: fan-out and control, each with its preparation, its recovery and its check.

An act is prepared and checked by the test's process, done and recovered by children of it.
"""

from datetime import timedelta
from typing import Any
from unittest.mock import patch
from uuid import UUID

from django.utils import timezone

from fleet.flow.dispatch import dispatch
from fleet.flow.plans import DispatchPlan
from fleet.models import (
    Command,
    Execution,
    Occurrence,
    Origin,
    Schedule,
    Wave,
    WaveState,
)
from fleet.operations.running import run_job
from fleet.operations.stopping import kill_execution
from fleet.rules.command_states import CommandState as S
from fleet.rules.targets import Rollout, Target
from fleet.rules.targets import Wave as PlannedWave
from scheduler.models import AuditEntry
from scheduler.public import request
from tests.faults.fleet_points import Point
from tests.faults.fleet_world import ALICE, World, finish, ids_in, killed, recover, run_tasks
from tests.fleet.make import make_schedule

CHUNK = 40


class Act:
    """One thing that is done in each round. `turns` = how often its place comes in a round."""

    turns = 1

    def __init__(self, world: World) -> None:
        self.world = world

    def prepare(self) -> None:
        """Write what the act needs."""

    def do(self) -> None:
        """Do it; here the process dies."""
        raise NotImplementedError

    def left(self) -> int:
        """How many turns left what they did; fails where one left the half of it."""
        raise NotImplementedError

    def expected(self, point: Point, turn: int) -> int:
        """How many turns may have left something when the `turn`-th was killed."""
        return turn - 1 + point.keeps

    def recover(self) -> None:
        """Go on, as a clean process, an agent or a person does."""
        recover()

    def check(self, point: Point) -> None:
        """Fail unless everything is as if nothing had happened."""

    def clean(self) -> None:
        """Take away what would make later rounds slow."""


def all_or_nothing(*counts: tuple[int, int]) -> int:
    """1 where each (count, whole) is whole, 0 where each is none of it."""
    if all(count == whole for count, whole in counts):
        return 1
    assert all(count == 0 for count, _ in counts), counts
    return 0


def remove(executions: Any) -> None:
    """Delete executions with what belongs to them."""
    Command.objects.filter(execution__in=executions).delete()
    executions.delete()


class Run(Act):
    """A person runs a job on everybody; a task of the runner writes the commands in chunks."""

    def prepare(self) -> None:
        self.reason = self.world.name("run")

    @property
    def executions(self) -> Any:
        return Execution.objects.filter(reason=self.reason)

    def do(self) -> None:
        with patch("fleet.flow.filling.CHUNK", CHUNK):
            run_job(
                self.world.job,
                target={"all": True},
                actor=ALICE,
                now=timezone.now(),
                reason=self.reason,
            )
            run_tasks()

    def left(self) -> int:
        audited = AuditEntry.objects.filter(action="run", reason=self.reason).count()
        return all_or_nothing((self.executions.count(), 1), (audited, 1))

    def stored(self) -> int:
        """How many commands are written; fails where that is not what the execution says."""
        found = self.executions.first()
        written = Command.objects.filter(execution__in=self.executions).count()
        assert written == (found.planned if found else 0)
        return written

    def recover(self) -> None:
        with patch("fleet.flow.filling.CHUNK", CHUNK):
            recover()
        for pc in self.world.pcs[:2]:
            assert len(finish(pc)) == self.executions.count()

    def check(self, point: Point) -> None:
        states = ["live"] if point.keeps else []
        assert list(self.executions.values_list("state", flat=True)) == states
        commands = Command.objects.filter(execution__in=self.executions)
        whole = len(self.world.pcs) if point.keeps else 0
        assert self.stored() == commands.values("agent").distinct().count() == whole
        assert self.left() == point.keeps

    def clean(self) -> None:
        remove(self.executions)


class Calendar(Act):
    """A calendar falls due, and the tick fires it."""

    def prepare(self) -> None:
        now = timezone.now()
        when = {"calendar": {"at": now.strftime("%H:%M")}}
        self.schedule = make_schedule(self.world.name("daily"), job=self.world.job, when=when)
        Schedule.objects.filter(pk=self.schedule.pk).update(next_fire_at=now)
        request("fleet.tick", key="kills", now=now)

    def do(self) -> None:
        with patch("fleet.flow.filling.CHUNK", CHUNK):
            run_tasks()

    def left(self) -> int:
        fired = Occurrence.objects.filter(schedule=self.schedule, state="fired")
        return all_or_nothing(
            (fired.count(), 1),
            (self.schedule.executions.count(), 1),
            (fired.exclude(execution_id=None).count(), 1),
            (self.schedule.evaluations.count(), 1),
        )

    def recover(self) -> None:
        with patch("fleet.flow.filling.CHUNK", CHUNK):
            # At once: it is on time for a minute and a half.
            run_tasks()

    def check(self, point: Point) -> None:  # fires in any case
        assert self.left() == 1
        execution = self.schedule.executions.get()
        commands = Command.objects.filter(execution=execution, state=S.QUEUED)
        assert (execution.state, execution.planned) == ("live", len(self.world.pcs))
        assert commands.values("agent").distinct().count() == execution.planned
        assert Occurrence.objects.get(schedule=self.schedule).execution_id == execution.pk

    def clean(self) -> None:
        remove(Execution.objects.filter(schedule=self.schedule))
        self.schedule.delete()


class ReleaseWave(Act):
    """The second wave of a rollout comes to its time."""

    def prepare(self) -> None:
        job = self.world.job
        assert job.current is not None
        waves = tuple(PlannedWave(f"half-{n}", n * timedelta(minutes=1)) for n in range(2))
        plan = DispatchPlan(job.current, Origin.MANUAL, "a", Target(), rollout=Rollout(waves))
        self.execution: UUID = dispatch(plan, now=timezone.now()).pk

    def do(self) -> None:
        run_tasks(later=timedelta(seconds=61))

    def left(self) -> int:
        half = len(self.world.pcs) // 2
        commands = Command.objects.filter(execution=self.execution, wave=1)
        released = Wave.objects.filter(execution=self.execution, number=1, state=WaveState.RELEASED)
        assert commands.count() == half
        return all_or_nothing(
            (released.count(), 1), (commands.filter(state=S.QUEUED).count(), half)
        )

    def check(self, point: Point) -> None:  # goes out in any case
        assert self.left() == 1

    def clean(self) -> None:
        remove(Execution.objects.filter(pk=self.execution))


class Cancel(Act):
    """A person stops an execution of which four PCs have their commands already."""

    held = 4

    def prepare(self) -> None:
        job = self.world.job
        assert job.current is not None
        plan = DispatchPlan(job.current, Origin.MANUAL, "alice", Target(all=True))
        self.execution = dispatch(plan, now=timezone.now())
        self.pcs = self.world.pcs[: self.held]
        self.holding = {pc.agent.pk: ids_in(pc.exchanges()) for pc in self.pcs}

    def do(self) -> None:
        kill_execution(self.execution, actor=ALICE, now=timezone.now())

    def left(self) -> int:
        commands = Command.objects.filter(execution=self.execution)
        asked = commands.exclude(kill_requested_at=None).count()
        audited = AuditEntry.objects.filter(action="kill", object_id=str(self.execution.pk))
        return all_or_nothing(
            (commands.filter(state=S.CANCELLED).count(), len(self.world.pcs) - self.held),
            (asked, self.held),
            (audited.count(), 1),
        )

    def recover(self) -> None:
        self.do()
        for pc in self.pcs:
            holding = self.holding[pc.agent.pk]
            assert pc.exchanges(holding=holding)["kill"] == holding
            stopped = [killed(command) for command in holding]
            assert set(pc.exchanges(results=stopped)["verdicts"].values()) == {"stored"}
        recover()

    def check(self, point: Point) -> None:  # it is stopped in any case
        states = Command.objects.filter(execution=self.execution).values_list("state", flat=True)
        assert sorted(states).count("killed") == self.held
        assert sorted(states).count("cancelled") == len(self.world.pcs) - self.held
        self.execution.refresh_from_db()
        assert self.execution.state == "ended"

    def clean(self) -> None:
        remove(Execution.objects.filter(pk=self.execution.pk))
