"""The running agent: one thread talks, one starts what may start, one waits to be called."""

import logging
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fleet.agent import enrolment
from fleet.agent.clock import ServerClock
from fleet.agent.exchange import Exchange, Talk
from fleet.agent.gate import Gate
from fleet.agent.identity import Identity, IdentityFile
from fleet.agent.journal import Journal
from fleet.agent.last_word import LastWordFile
from fleet.agent.local_schedules import LocalSchedules
from fleet.agent.outbox import Outbox
from fleet.agent.pace import SHORTEST_S, Pace
from fleet.agent.transport import Transport
from fleet.agent.waiter import Waiter
from fleet.agent.work import Work
from fleet.agent.workspace import remove_leftovers
from scheduler.rules.contained import contained

logger = logging.getLogger(__name__)

STOP_GRACE_S = 10.0
OUTBOX_FOLDER = "outbox"
_ABORT_S = 15.0
# Beside the pause between two exchanges and that of the page, within two seconds in all.
_LIVE_EVERY_S = 0.5
_COMPACT_EVERY_S = 86_400.0
_MOST_ROUNDS = 50


@dataclass(frozen=True, slots=True)
class Connections:
    """The two ways to the server: exchanges, and the wait."""

    exchange: Transport
    wait: Transport


class Agent:
    """Everything that belongs to one enrolled agent."""

    def __init__(
        self,
        folder: Path,
        identity: Identity,
        connections: Connections,
        *,
        slots: int,
        pace: Pace | None = None,
    ) -> None:
        self._clock, self._gate = ServerClock(), Gate()
        self._journal = Journal(folder / enrolment.JOURNAL_FILE, expected=True)
        self._outbox = Outbox(folder / OUTBOX_FOLDER)
        self._work = Work(
            journal=self._journal,
            outbox=self._outbox,
            gate=self._gate,
            clock=self._clock,
            slots=slots,
        )
        file, last_word = IdentityFile(folder, identity), LastWordFile(folder)
        self._local = LocalSchedules(
            folder,
            pinned=lambda: file.current.pinned,
            work=self._work,
            gate=self._gate,
            clock=self._clock,
        )
        self._recall(last_word)
        self._exchange = Exchange(
            identity=file,
            transport=connections.exchange,
            work=self._work,
            outbox=self._outbox,
            journal=self._journal,
            gate=self._gate,
            clock=self._clock,
            pace=pace or Pace(),
            local=self._local,
            last_word=last_word,
        )
        self._connections = connections
        self._called = threading.Event()
        self._compacted_at: float | None = None

    def run_forever(self) -> None:
        """Work until `stop`, then let scripts end for ten seconds, then end them."""
        remove_leftovers()
        self._work.recover()
        starter = threading.Thread(target=self._start_what_may, name="starter", daemon=True)
        waiter = Waiter(self._connections.wait, on_call=self._call)
        waiter.start()
        try:
            # First the server is asked: what is remembered of it may be old.
            talk = self._talk()
            starter.start()
            while not self._gate.is_stopping:
                waiter.offer(talk.ticket)
                self._pause(talk)
                if not self._gate.is_stopping:
                    talk = self._talk()
        finally:
            waiter.stop()
            self._shut_down()
            if starter.is_alive():
                starter.join()

    def run_once(self) -> Talk:
        """Exchange, run what came, report it; again while a report brings more."""
        self._work.recover()
        talk = self._talk()
        for _ in range(_MOST_ROUNDS):
            if not talk.ok or self._gate.is_stopping:
                break
            self._run_what_came()
            if not talk.came and not len(self._outbox):
                break
            talk = self._talk()
        self._shut_down()
        return talk

    def close(self) -> None:
        """Close the files and connections of an agent that does not run."""
        self._connections.exchange.close()
        self._journal.close()

    def stop(self) -> None:
        """Ask to stop; a second time: do not wait for scripts."""
        if self._gate.is_stopping:
            self._gate.abort()
        self._gate.stop()

    def _recall(self, last_word: LastWordFile) -> None:
        """Go on by what the server last said, until it is heard again."""
        word = last_word.read()
        if word is None:
            return
        self._gate.set_freeze(word.freeze)
        reckoned = word.server_time_at(datetime.now(UTC))
        if reckoned is not None:
            self._clock.estimate(reckoned)

    def _talk(self) -> Talk:
        self._called.clear()
        talk = self._exchange.once()
        if not talk.ok:
            logger.warning("exchange: %s; again in %.0f s", talk.problem, talk.next_in_s)
        self._compact()
        return talk

    def _call(self) -> None:
        self._called.set()
        self._gate.ring()

    def _pause(self, talk: Talk) -> None:
        """Wait for the next exchange; news and calls shorten the wait, failures do not."""
        gate = self._gate
        gate.wait_for(lambda: gate.is_stopping, SHORTEST_S if talk.ok else talk.next_in_s)
        if not talk.ok:
            return
        last = self._clock.steady() + talk.next_in_s - SHORTEST_S
        while (left := last - self._clock.steady()) > 0 and not self._is_due():
            # Live output rings no bell: while something runs it is looked for now and then.
            gate.wait_for(self._is_due, min(left, _LIVE_EVERY_S) if self._work.running() else left)
            if self._work.has_live():
                return

    def _is_due(self) -> bool:
        """Whether the server should hear from this agent now."""
        news = self._work.started() or self._outbox.next_due_in() == 0.0
        return bool(self._gate.is_stopping or self._called.is_set() or news)

    def _start_what_may(self) -> None:
        while not self._gate.is_stopping:
            changes, nap = self._gate.changes, 1.0
            with contained("commands could not be started"):
                nap = min(self._local.step(), self._work.step())
            self._gate.wait_beyond(changes, nap)

    def _run_what_came(self) -> None:
        while True:
            changes = self._gate.changes
            nap = self._work.step()
            if self._work.is_stuck() or self._gate.is_stopping:
                return
            self._gate.wait_beyond(changes, nap)

    def _compact(self) -> None:
        now, steady = self._clock.now(), self._clock.steady()
        if now is None or (
            self._compacted_at is not None and steady - self._compacted_at < _COMPACT_EVERY_S
        ):
            return
        self._compacted_at = steady
        with contained("the journal could not be compacted"):
            self._journal.compact(now)

    def _shut_down(self) -> None:
        self._gate.stop()
        if not self._work.join(STOP_GRACE_S):
            logger.warning("scripts still run; they are ended")
        self._gate.abort()
        self._work.join(_ABORT_S)
        self.close()
