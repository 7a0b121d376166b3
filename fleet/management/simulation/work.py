"""The commands that a simulated PC holds. Its scripts only pretend to run.

What is signed is verified and what forbids a start is asked in the agent's own words; there is no
journal, for nothing here outlives the process.
"""

import hashlib
import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from fleet.agent import envelope, waiting
from fleet.agent.commands import Command, Outcome, read_command
from fleet.agent.gate import UNREADABLE, Freeze
from fleet.agent.output import Captured, Output, Stream
from fleet.agent.results import Result, to_document

SLOTS = 4
_LONGEST_NAP_S = 30.0


@dataclass(slots=True)
class Pretence:
    """A script that pretends to run until `ends_at` by the server's time."""

    command: Command
    started_at: datetime
    ends_at: datetime
    output: bytes
    is_told: bool = False
    live_sent: bool = False


@dataclass(slots=True)
class Work:
    """What one PC was given: `queued` and `running` by id, `results` until they are answered."""

    pinned_key: bytes
    output_bytes: int
    longest_run_s: float
    freeze: Freeze = UNREADABLE
    queued: dict[str, Command] = field(default_factory=dict)
    running: dict[str, Pretence] = field(default_factory=dict)
    results: dict[str, dict[str, object]] = field(default_factory=dict)
    killed: set[str] = field(default_factory=set)

    def take(self, value: object) -> bool:
        """Hold a command once its signature holds; False for one that is known already.

        Raises EnvelopeError or FieldError: the server has sent what no agent would take.
        """
        read = envelope.read_envelope(value)
        signed = envelope.pre_authentication_encoding(read.payload_type, read.payload)
        try:
            Ed25519PublicKey.from_public_bytes(self.pinned_key).verify(read.signatures[0], signed)
        except InvalidSignature as error:
            raise envelope.EnvelopeError("the signature is not by the pinned key") from error
        command = read_command(json.loads(read.payload))
        if command.id in self.queued or command.id in self.running or command.id in self.results:
            return False
        self.queued[command.id] = command
        return True

    def step(self, now: datetime) -> tuple[int, float]:
        """Start and end what may; how many started, and the seconds until the next look."""
        started = 0
        for run in [run for run in self.running.values() if self._is_over(run, now)]:
            self._end(run, now)
        for command in list(self.queued.values()):
            match self._decide(command, now):
                case waiting.End(outcome, reason):
                    self._answer(Result(command.id, outcome, now, reason=reason))
                case waiting.Start() if len(self.running) < SLOTS:
                    self._start(command, now)
                    started += 1
        return started, self._nap(now)

    def has_news(self) -> bool:
        """Whether the server should hear of a start or a result."""
        return bool(self.results) or any(not run.is_told for run in self.running.values())

    def holding(self) -> list[str]:
        """The ids of all that wait or run."""
        return [*self.queued, *self.running]

    def starts(self) -> list[dict[str, object]]:
        """The starts of which the server has not heard."""
        return [
            {"command": name, "attempt": 1, "started_at": run.started_at.isoformat()}
            for name, run in self.running.items()
            if not run.is_told
        ]

    def _decide(self, command: Command, now: datetime) -> waiting.Step:
        is_frozen = self.freeze.covers(now) and not command.override_freeze
        return waiting.decide(
            command,
            not_before=command.start_after,
            now=now,
            forbidden="frozen" if is_frozen else None,
            killed=command.id in self.killed,
        )

    def _start(self, command: Command, now: datetime) -> None:
        del self.queued[command.id]
        seconds = drawn(command.id) * self.longest_run_s
        line = f"{command.job} on {command.agent_id}\n".encode()
        output = (line * (self.output_bytes // len(line) + 1))[: self.output_bytes]
        self.running[command.id] = Pretence(command, now, now + timedelta(seconds=seconds), output)

    def _is_over(self, run: Pretence, now: datetime) -> bool:
        return run.ends_at <= now or run.command.id in self.killed

    def _end(self, run: Pretence, now: datetime) -> None:
        is_killed = run.command.id in self.killed
        self._answer(
            Result(
                run.command.id,
                Outcome.KILLED if is_killed else Outcome.SUCCEEDED,
                now,
                exit_code=-1 if is_killed else 0,
                started_at=run.started_at,
                duration=now - run.started_at,
                output=_captured(run),
                code_page="utf-8",
            )
        )

    def _answer(self, result: Result) -> None:
        self.queued.pop(result.command, None)
        self.running.pop(result.command, None)
        self.killed.discard(result.command)
        self.results[result.command] = to_document(result)

    def _nap(self, now: datetime) -> float:
        moments = [run.ends_at for run in self.running.values()]
        moments += [held.start_after for held in self.queued.values() if held.start_after]
        later = [(moment - now).total_seconds() for moment in moments if moment > now]
        return min([*later, _LONGEST_NAP_S])


def drawn(text: str) -> float:
    """Return a number from 0 to 1 that looks like chance and is the same at each run."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) / 2**32


def _captured(run: Pretence) -> dict[Stream, Captured]:
    output = Output(run.command.script.max_output)
    output.feed(Stream.STDOUT, run.output)
    return output.captured()
