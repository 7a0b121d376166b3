"""One attempt: the script's process from its start to its end, whoever ends it."""

import signal
from dataclasses import dataclass

from fleet.agent.commands import Command, Outcome
from fleet.agent.gate import Gate
from fleet.agent.output import Output
from fleet.agent.processes import TERMINATION_GRACE_S, ProcessTree
from fleet.agent.pump import Pump
from fleet.agent.workspace import Workspace

# Said where a script did not end by itself.
NO_EXIT_CODE = -1
_SIGNAL_BASE = 128


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """How one attempt ended."""

    outcome: Outcome
    exit_code: int | None = None
    reason: str = ""


class Attempt:
    """A started attempt."""

    def __init__(self, command: Command, place: Workspace, output: Output, gate: Gate) -> None:
        """Start the script; raises OSError when the system cannot: then nothing has run."""
        self._command, self._gate = command, gate
        self._tree = ProcessTree(place, on_exit=gate.ring)
        try:
            self._pump = Pump(self._tree.process, output)
        except RuntimeError:
            # No thread to read its output: it would wait for ever, and nobody for it.
            self._tree.end(grace_s=0)
            raise

    def wait(self, *, grace_s: float = TERMINATION_GRACE_S) -> AttemptEnd:
        """Wait for the end: the script's own, its timeout, a kill, or the agent's stop."""
        timeout_s = self._command.script.timeout_s
        self._gate.wait_for(self._is_over, timeout_s)
        try:
            if self._tree.exited.is_set():
                if self._tree.has_failed:
                    # A further attempt must not run beside what this one has left behind.
                    self._tree.end(grace_s=grace_s)
                return self._own_end()
            self._tree.end(grace_s=grace_s)
            return self._forced_end(timeout_s)
        finally:
            self._pump.finish()
            self._tree.exit_code()

    def _is_over(self) -> bool:
        gate, command = self._gate, self._command.id
        return self._tree.exited.is_set() or gate.is_killed(command) or gate.is_aborting

    def _own_end(self) -> AttemptEnd:
        code = self._tree.exit_code()
        if code == 0:
            return AttemptEnd(Outcome.SUCCEEDED, 0)
        if code is not None and code < 0:
            return AttemptEnd(Outcome.FAILED, _SIGNAL_BASE - code, _signal_words(-code))
        return AttemptEnd(Outcome.FAILED, code)

    def _forced_end(self, timeout_s: int) -> AttemptEnd:
        if self._gate.is_killed(self._command.id):
            return AttemptEnd(Outcome.KILLED, NO_EXIT_CODE, "killed on request")
        if self._gate.is_aborting:
            return AttemptEnd(
                Outcome.OUTCOME_UNKNOWN,
                NO_EXIT_CODE,
                "the agent was stopped while the script ran, and ended it",
            )
        return AttemptEnd(Outcome.TIMED_OUT, NO_EXIT_CODE, f"timeout after {timeout_s} s")


def _signal_words(number: int) -> str:
    known = number in set(signal.Signals)
    return f"ended by the signal {signal.Signals(number).name if known else number}"
