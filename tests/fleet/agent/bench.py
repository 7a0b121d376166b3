"""An agent's inside on a workbench: journal, outbox, gate and a clock that the test moves."""

from dataclasses import dataclass
from pathlib import Path

from fleet.agent.clock import ServerClock
from fleet.agent.gate import Freeze, Gate
from fleet.agent.journal import Journal
from fleet.agent.outbox import Outbox
from fleet.agent.work import Work
from tests.fleet.agent.make import NOW
from tests.fleet.agent.until import until

PLENTY = 1024 * 1024 * 1024


@dataclass
class Steady:
    """A clock that moves when told."""

    at: float = 0.0

    def __call__(self) -> float:
        return self.at


class Bench:
    """The parts around `Work`, at the server's time NOW, thawed."""

    def __init__(self, folder: Path, *, slots: int = 4, expected: bool = False) -> None:
        self.steady = Steady()
        self.clock = ServerClock(steady=self.steady)
        self.clock.learn(NOW, asked_at=0.0, answered_at=0.0)
        self.gate = Gate()
        self.gate.set_freeze(Freeze())
        self.journal = Journal(folder / "journal", expected=expected)
        self.outbox = Outbox(folder / "outbox", steady=self.steady)
        self.work = Work(
            journal=self.journal,
            outbox=self.outbox,
            gate=self.gate,
            clock=self.clock,
            slots=slots,
        )

    def advance(self, seconds: float) -> None:
        """Move the server's time on and let everybody look."""
        self.steady.at += seconds
        self.gate.ring()

    def results(self) -> dict[str, dict[str, object]]:
        """What the outbox holds, by command."""
        found = self.outbox.due(most_bytes=PLENTY)
        return {str(result["command"]): result for result in found}

    def result(self, command: str) -> dict[str, object]:
        """The result of a command, once it is there."""

        def look() -> dict[str, object] | None:
            self.work.step()
            return self.outbox.find(command)

        found = until(look, what=f"the result of {command}")
        assert found is not None
        until(lambda: command not in self.work.holding(), what="its thread to end")
        return found

    def close(self) -> None:
        """End what runs and close the files."""
        self.gate.abort()
        assert self.work.join(20), "scripts still run"
        self.journal.close()
