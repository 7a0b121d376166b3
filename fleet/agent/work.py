"""The commands that this agent holds: queued until they may start, then one thread each."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from fleet.agent import recovery, waiting
from fleet.agent.attempts import LONGEST_NAP_S, CommandRun
from fleet.agent.clock import ServerClock
from fleet.agent.commands import Command, Outcome
from fleet.agent.gate import Gate
from fleet.agent.journal import Journal
from fleet.agent.journal_records import Ending, Entry
from fleet.agent.outbox import Outbox
from fleet.agent.output import Chunk
from fleet.agent.results import Result, to_document
from fleet.agent.runner import NO_EXIT_CODE
from scheduler.rules.contained import contained

logger = logging.getLogger(__name__)

MAX_HELD = 1000
_REFUSAL_KEPT = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Started:
    """An attempt has started, by the server's time."""

    command: str
    attempt: int
    started_at: datetime
    local: dict[str, object] | None = None


OnResult = Callable[[Result], None]


class Work:
    """Takes commands, starts each when it may, puts every result into the outbox."""

    def __init__(
        self, *, journal: Journal, outbox: Outbox, gate: Gate, clock: ServerClock, slots: int
    ) -> None:
        self._journal, self._outbox, self._gate, self._clock = journal, outbox, gate, clock
        self._slots = slots
        self._lock = threading.Lock()
        self._queue: dict[str, Command] = {}
        self._running: dict[str, CommandRun] = {}
        self._started: list[Started] = []
        self._on_result: OnResult = lambda _: None

    def tell_results_to(self, on_result: OnResult) -> None:
        """Call `on_result` for each result from now on, whatever thread it comes from."""
        self._on_result = on_result

    def recover(self) -> None:
        """After a start of the agent: answer for what an earlier one left unfinished."""
        for entry in self._journal.interrupted():
            document = self._outbox.find(entry.command)
            if document is None:
                self._report(recovery.interrupted(entry))
            else:
                # It was in the outbox already; only the journal's last line is missing.
                self._note_end(entry.command, recovery.ending_of(document))
        self.report_lost()

    def report_lost(self) -> None:
        """Answer anew for results whose files could not be read."""
        while self._outbox.lost:
            entry = self._journal.entry(self._outbox.lost.pop())
            if entry is not None and entry.finished is not None:
                self.report_again(entry)

    def accept(self, command: Command) -> bool:
        """Hold a command until it may start; False when it is not taken and may come again."""
        with self._lock:
            if command.id in self._queue or command.id in self._running:
                return True
            if len(self._queue) >= MAX_HELD:
                return False
        try:
            self._journal.received(command)
        except OSError as error:
            logger.warning("a command is not taken: the journal cannot be written: %s", error)
            return False
        with self._lock:
            self._queue[command.id] = command
        self._gate.ring()
        return True

    def refuse(self, command: str, outcome: Outcome, reason: str) -> None:
        """Answer for a command that will not be held."""
        self._report(Result(command, outcome, self._clock.now(), reason=reason))

    def forget(self, commands: set[str]) -> None:
        """Drop what waits and the server does not know (any more); what runs ends by itself."""
        with self._lock:
            for command in commands & self._queue.keys():
                del self._queue[command]

    def report_again(self, entry: Entry) -> None:
        """Answer for a command that ended long ago, unless its result is still on its way."""
        if entry.finished is None or entry.command in self._outbox:
            return
        self._outbox.put(to_document(recovery.told_again(entry, entry.finished)))

    def holding(self) -> list[str]:
        """The ids of all commands of the server's that wait or run."""
        with self._lock:
            held = [*self._queue.values(), *(run.command for run in self._running.values())]
            return [command.id for command in held if command.local is None]

    def holds(self, command: str) -> bool:
        """Whether a command, of the server's or the agent's own, waits or runs."""
        with self._lock:
            return command in self._queue or command in self._running

    def started(self) -> list[Started]:
        """The starts of which the server has not heard yet."""
        with self._lock:
            return list(self._started)

    def told(self, started: list[Started]) -> None:
        """The server has heard of these starts."""
        with self._lock:
            self._started = [event for event in self._started if event not in started]

    def live(self) -> list[tuple[CommandRun, Chunk]]:
        """Pieces of output of what runs, to be sent."""
        with self._lock:
            running = list(self._running.values())
        return [(run, chunk) for run in running for chunk in run.output.live()]

    def has_live(self) -> bool:
        """Whether a piece of output waits to be sent."""
        with self._lock:
            return any(run.output.has_live() for run in self._running.values())

    def running(self) -> int:
        """How many commands run."""
        with self._lock:
            return len(self._running)

    def step(self) -> float:
        """Start or end what may; the seconds after which to look again."""
        nap = LONGEST_NAP_S
        now = self._clock.now()
        for command in self._in_order():
            match self._decide(command, now):
                case waiting.End(outcome, reason):
                    self._end_unstarted(command, outcome, reason)
                case waiting.Start() if self.running() < self._slots:
                    self._launch(command)
                case waiting.Wait(_, datetime() as until) if now is not None:
                    nap = min(nap, max(0.0, (until - now).total_seconds()))
        return nap

    def is_stuck(self) -> bool:
        """Whether nothing runs and what is held waits for somebody else, not for its time."""
        now = self._clock.now()
        steps = [self._decide(command, now) for command in self._in_order()]
        free = all(isinstance(step, waiting.Wait) and step.until is None for step in steps)
        return free and not self.running()

    def join(self, timeout_s: float) -> bool:
        """Wait until nothing runs, at most `timeout_s`; whether that is so."""
        return self._gate.wait_for(lambda: not self.running(), timeout_s)

    def _in_order(self) -> list[Command]:
        with self._lock:
            queued = list(self._queue.values())
        return sorted(queued, key=lambda command: command.start_after or command.issued_at)

    def _decide(self, command: Command, now: datetime | None) -> waiting.Step:
        return waiting.decide(
            command,
            not_before=command.start_after,
            now=now,
            forbidden=self._gate.forbids(now, override_freeze=command.override_freeze),
            killed=self._gate.is_killed(command.id),
        )

    def _end_unstarted(self, command: Command, outcome: Outcome, reason: str) -> None:
        code = NO_EXIT_CODE if outcome is Outcome.KILLED else None
        now = self._clock.now()
        local = command.local
        self._report(Result(command.id, outcome, now, exit_code=code, reason=reason, local=local))
        with self._lock:
            self._queue.pop(command.id, None)

    def _launch(self, command: Command) -> None:
        run = CommandRun(
            command,
            journal=self._journal,
            gate=self._gate,
            clock=self._clock,
            on_started=self._note_start,
        )
        thread = threading.Thread(target=self._perform, args=(run,), name=command.id, daemon=True)
        with self._lock:
            if not self._queue.pop(command.id, None):
                return
            self._running[command.id] = run
        try:
            thread.start()
        except RuntimeError as error:
            logger.warning("no thread for a command, which waits on: %s", error)
            with self._lock:
                self._queue[command.id] = self._running.pop(command.id).command

    def _perform(self, run: CommandRun) -> None:
        command, local = run.command.id, run.command.local
        reason = "a fault of the agent; see its log"
        unknown = Result(command, Outcome.OUTCOME_UNKNOWN, None, reason=reason, local=local)
        result: Result | None = unknown
        with contained("a command failed inside the agent", command=command):
            result = run.perform()
        if result is not None:
            self._report(result)
        with self._lock:
            del self._running[command]
        self._gate.ring()

    def _note_start(self, command: Command, attempt: int, started_at: datetime) -> None:
        with self._lock:
            self._started.append(Started(command.id, attempt, started_at, command.local))
        self._gate.ring()

    def _report(self, result: Result) -> None:
        """Into the outbox first: a crash in between is answered for from there."""
        self._outbox.put(to_document(result))
        self._note_end(result.command, Ending(result.outcome, result.exit_code))
        self._on_result(result)

    def _note_end(self, command: str, ending: Ending) -> None:
        now = self._clock.now()
        try:
            if now is None or self._journal.entry(command) is not None:
                self._journal.finished(command, ending)
            else:
                self._journal.refused(command, ending, keep_until=now + _REFUSAL_KEPT)
        except OSError as error:
            # The result in the outbox says it as well; the journal learns it at the next start.
            logger.warning("the journal cannot note an end: %s", error)
