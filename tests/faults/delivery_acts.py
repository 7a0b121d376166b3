"""What is killed: the exchange, in each of its stages, and what people do to PCs and the freeze.

A round of an exchange has four PCs that speak one after the other; one of them is cut off. No PC
ever gets a reply that it could build on: it sends the same message again.
"""

from typing import Any

from django.utils import timezone

from fleet.flow.dispatch import dispatch
from fleet.flow.plans import DispatchPlan
from fleet.models import AgentPresence, Command, Origin, Output, OutputChunk, Result
from fleet.operations.stopping import kill_execution
from fleet.rules.command_states import CommandState as S
from fleet.rules.targets import Target
from tests.faults.fleet_acts import Act, all_or_nothing
from tests.faults.fleet_points import Point
from tests.faults.fleet_world import ALICE, World, finish, ids_in, result_of
from tests.fleet.agent_api.asking import Pc
from tests.fleet.flow.reporting import stream


class Exchange(Act):
    """Four PCs of an execution that means the whole fleet."""

    turns = 4

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.rest: list[Pc] = []
        self.begin()

    def begin(self) -> None:
        """Send everybody a command."""
        job = self.world.job
        assert job.current is not None
        plan = DispatchPlan(job.current, Origin.MANUAL, "alice", Target(all=True))
        self.execution = dispatch(plan, now=timezone.now())
        self.rest = list(self.world.pcs)

    def prepare(self) -> None:
        self.pcs = [self.rest.pop(0) for _ in range(self.turns)]
        self.known = {pc.agent.pk: self.before(pc) for pc in self.pcs}

    def before(self, pc: Pc) -> str:
        """Bring a PC to where the act begins; return the command that it has, or nothing."""
        return ""

    def fetched(self, pc: Pc) -> str:
        """Fetch the command."""
        (command,) = ids_in(pc.exchanges())
        return command

    def do(self) -> None:
        for pc in self.pcs:
            self.speak(pc, self.known[pc.agent.pk])

    def speak(self, pc: Pc, command: str) -> None:
        """Send the message that is cut off."""
        raise NotImplementedError

    def left(self) -> int:
        return sum(self.has_left(self.command_of(pc)) for pc in self.pcs)

    def has_left(self, command: Command) -> int:
        """1 where the message was taken, 0 where nothing of it was."""
        raise NotImplementedError

    def command_of(self, pc: Pc) -> Command:
        """The command of a PC."""
        return Command.objects.get(execution=self.execution, agent=pc.agent)

    def recover(self) -> None:
        for pc in self.pcs:
            command = self.known[pc.agent.pk]
            if command:
                told = pc.exchanges(holding=[command], results=[result_of(command)])
                assert told["verdicts"][command] in {"stored", "duplicate"}
            else:
                assert len(finish(pc)) == 1

    def check(self, point: Point) -> None:  # all four end well in any case
        for pc in self.pcs:
            command = self.command_of(pc)
            assert (command.state, command.attempt) == ("succeeded", 1)
            assert Result.objects.filter(command_id=command.pk, outcome="succeeded").count() == 1
            assert Output.objects.filter(command_id=command.pk).count() == 1
            assert OutputChunk.objects.filter(command_id=command.pk).count() == 0
            handouts = AgentPresence.objects.get(pk=pc.agent.pk).handouts
            assert command.seq == handouts

    def clean(self) -> None:
        if not self.rest:
            assert Result.objects.filter(execution_id=self.execution.pk).count() == len(
                self.world.pcs
            )
            self.begin()

    def end(self) -> None:
        """Stop what is left of the execution."""
        if self.rest:
            kill_execution(self.execution, actor=ALICE, now=timezone.now())


class Fetch(Exchange):
    """A PC asks and is given its command."""

    def speak(self, pc: Pc, command: str) -> None:  # it has none yet
        pc.exchanges()

    def has_left(self, command: Command) -> int:
        known = AgentPresence.objects.get(pk=command.agent_id).handouts
        return all_or_nothing(
            (int(command.state == S.HANDED_OUT), 1),
            (int(command.handed_out_at is not None), 1),
            (int(command.seq > 0 and command.seq == known), 1),
            (int(command.reap_at is not None), 1),
        )


class Start(Exchange):
    """A PC says that it has begun."""

    def before(self, pc: Pc) -> str:
        return self.fetched(pc)

    def speak(self, pc: Pc, command: str) -> None:
        pc.exchanges(holding=[command], started=[start_of(command)])

    def has_left(self, command: Command) -> int:
        return all_or_nothing(
            (int(command.state == S.STARTED), 1),
            (int(command.started_at is not None), 1),
            (command.attempt, 1),
        )


class Chunk(Exchange):
    """A PC sends a piece of output while the script runs."""

    def before(self, pc: Pc) -> str:
        command = self.fetched(pc)
        pc.exchanges(holding=[command], started=[start_of(command)])
        return command

    def speak(self, pc: Pc, command: str) -> None:
        piece = {"command": command, "stream": "stdout", "offset": 0, "bytes": stream(b"x")["head"]}
        pc.exchanges(holding=[command], output=[piece])

    def has_left(self, command: Command) -> int:
        assert command.state == S.STARTED
        return OutputChunk.objects.filter(command_id=command.pk).count()


class Report(Exchange):
    """A PC sends its result."""

    def before(self, pc: Pc) -> str:
        return self.fetched(pc)

    def speak(self, pc: Pc, command: str) -> None:
        pc.exchanges(results=[result_of(command)])

    def has_left(self, command: Command) -> int:
        return all_or_nothing(
            (int(command.state == S.SUCCEEDED), 1),
            (Result.objects.filter(command_id=command.pk).count(), 1),
            (Output.objects.filter(command_id=command.pk).count(), 1),
            (command.attempt, 1),
        )


class ReportAgain(Report):
    """A PC sends its result a second time."""

    def before(self, pc: Pc) -> str:
        command = self.fetched(pc)
        pc.exchanges(results=[result_of(command)])
        return command

    def expected(self, point: Point, turn: int) -> int:  # nothing is at stake
        return self.turns


def start_of(command: str) -> dict[str, Any]:
    """The start of a command, reported."""
    return {"command": command, "attempt": 1, "started_at": timezone.now().isoformat()}
