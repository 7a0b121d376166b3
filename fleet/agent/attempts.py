"""All attempts of one command: when another follows, and what is said of them together."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from fleet.agent import waiting
from fleet.agent.clock import ServerClock
from fleet.agent.commands import Command, Outcome
from fleet.agent.gate import Gate
from fleet.agent.journal import AlreadyStartedError, Journal
from fleet.agent.journal_records import Ending
from fleet.agent.output import Output
from fleet.agent.results import Result
from fleet.agent.runner import NO_EXIT_CODE, Attempt, AttemptEnd
from fleet.agent.workspace import RefusedError, Workspace, workspace
from scheduler.rules.contained import contained

logger = logging.getLogger(__name__)

# The longest sleep: time may have jumped under it, or the PC have slept itself.
LONGEST_NAP_S = 5.0
STOPPING = "the agent is stopping"

OnStarted = Callable[[Command, int, datetime], None]


@dataclass(frozen=True, slots=True)
class NotStarted:
    """An attempt that did not start; without an outcome the command may come again."""

    outcome: Outcome | None
    reason: str


def is_retryable(end: AttemptEnd) -> bool:
    """Whether another attempt may follow: after a failure or a timeout, never after a kill."""
    return end.outcome in {Outcome.FAILED, Outcome.TIMED_OUT}


def retry_note(retries: int, outcome: Outcome) -> str:
    """What is said of a command that took `retries` more attempts."""
    if not retries:
        return ""
    times = f"{retries} {'retry' if retries == 1 else 'retries'}"
    if outcome is Outcome.SUCCEEDED:
        return f"succeeded after {times}"
    if outcome is Outcome.KILLED:
        return f"stopped by remote kill after {times}"
    return f"failed after {times} exhausted"


class CommandRun:
    """One command from its first attempt to its result, in a thread of its own."""

    def __init__(
        self,
        command: Command,
        *,
        journal: Journal,
        gate: Gate,
        clock: ServerClock,
        on_started: OnStarted,
    ) -> None:
        self.command = command
        self.output = Output(command.script.max_output)
        self._journal, self._gate, self._clock = journal, gate, clock
        self._on_started = on_started
        self._attempt = self._retries = 0
        self._started_at: datetime | None = None
        self._started_mark = clock.steady()
        self._code_page = ""

    def perform(self) -> Result | None:
        """Run to the end; None when nothing was started and the server may send it again."""
        first = self._try_once(self.command.start_after)
        if isinstance(first, NotStarted):
            return None if first.outcome is None else self._unstarted(first)
        end = first
        while is_retryable(end) and self._retries < self.command.retry.times:
            again = self._retry(end)
            if isinstance(again, NotStarted):
                return self._given_up(end, again)
            end = again
        return self._result(end, retry_note(self._retries, end.outcome))

    def _retry(self, failed: AttemptEnd) -> AttemptEnd | NotStarted:
        with contained("the journal could not note an attempt", command=self.command.id):
            self._journal.attempt_ended(self.command.id, Ending(failed.outcome, failed.exit_code))
        # Counted before the pause, so that a kill in the pause names it.
        self._retries += 1
        pause = timedelta(seconds=self.command.retry.backoff_s)
        return self._try_once(self._clock.require_now() + pause)

    def _try_once(self, not_before: datetime | None) -> AttemptEnd | NotStarted:
        while True:
            obstacle = self._wait_for_turn(not_before)
            if obstacle is not None:
                return obstacle
            try:
                with workspace(self.command, self._attempt + 1) as place:
                    started = self._start(place, not_before)
                    if isinstance(started, Attempt):
                        return started.wait()
            except RefusedError as error:
                return NotStarted(Outcome.REFUSED, str(error))
            except OSError as error:
                return NotStarted(Outcome.REFUSED, f"this PC cannot run it: {error}")
            if started is not None:
                return started

    def _wait_for_turn(self, not_before: datetime | None) -> NotStarted | None:
        """Wait until the attempt may start; what keeps it from ever starting, or None."""
        while True:
            changes, step = self._gate.changes, self._decide(not_before)
            match step:
                case waiting.Start():
                    return None
                case waiting.End(outcome, reason):
                    return NotStarted(outcome, reason)
                case waiting.Wait(_, until):
                    if self._gate.is_stopping:
                        return NotStarted(None, STOPPING)
                    self._gate.wait_beyond(changes, self._nap(until))

    def _start(
        self, place: Workspace, not_before: datetime | None
    ) -> Attempt | AttemptEnd | NotStarted | None:
        """Journal and start while the gate cannot change; None when it closed meanwhile."""
        attempt = self._attempt + 1
        with self._gate.closed():
            if not isinstance(self._decide(not_before), waiting.Start):
                return None
            try:
                self._journal.started(self.command.id, attempt)
            except AlreadyStartedError as error:
                return NotStarted(Outcome.OUTCOME_UNKNOWN, str(error))
            except OSError as error:
                return NotStarted(Outcome.REFUSED, f"the journal cannot be written: {error}")
            self._attempt, self._code_page = attempt, place.code_page
            began = (self._clock.require_now(), self._clock.steady())
            self.output = Output(self.command.script.max_output, after=self.output)
            try:
                running = Attempt(self.command, place, self.output, self._gate)
            except OSError as error:
                return AttemptEnd(Outcome.REFUSED, None, f"it could not be started: {error}")
        if self._started_at is None:
            self._started_at, self._started_mark = began
        self._on_started(self.command, attempt, began[0])
        return running

    def _decide(self, not_before: datetime | None) -> waiting.Step:
        now = self._clock.now()
        override = self.command.override_freeze
        return waiting.decide(
            self.command,
            not_before=not_before,
            now=now,
            forbidden=self._gate.forbids(now, override_freeze=override),
            killed=self._gate.is_killed(self.command.id),
        )

    def _nap(self, until: datetime | None) -> float:
        now = self._clock.now()
        if until is None or now is None:
            return LONGEST_NAP_S
        return min(LONGEST_NAP_S, max(0.0, (until - now).total_seconds()))

    def _unstarted(self, obstacle: NotStarted) -> Result:
        assert obstacle.outcome is not None
        code = NO_EXIT_CODE if obstacle.outcome is Outcome.KILLED else None
        return self._result(AttemptEnd(obstacle.outcome, code, obstacle.reason), "")

    def _given_up(self, failed: AttemptEnd, obstacle: NotStarted) -> Result:
        """The next attempt did not start: a kill ends the command, else the last failure stands."""
        if obstacle.outcome is Outcome.KILLED:
            self.output = Output(0)
            killed = AttemptEnd(Outcome.KILLED, NO_EXIT_CODE, "killed on request")
            return self._result(killed, retry_note(self._retries, Outcome.KILLED))
        self._retries -= 1
        reasons = [failed.reason, f"not tried again: {obstacle.reason}"]
        reason = "; ".join(filter(None, reasons))
        return self._result(AttemptEnd(failed.outcome, failed.exit_code, reason), "")

    def _result(self, end: AttemptEnd, note: str) -> Result:
        started = self._started_at is not None
        elapsed = self._clock.steady() - self._started_mark if started else 0.0
        return Result(
            self.command.id,
            end.outcome,
            finished_at=self._clock.now(),
            attempt=max(1, self._attempt),
            exit_code=end.exit_code,
            reason=end.reason,
            started_at=self._started_at,
            duration=timedelta(seconds=elapsed),
            retries=self._retries,
            note=note,
            output=self.output.captured(),
            code_page=self._code_page,
            local=self.command.local,
        )
