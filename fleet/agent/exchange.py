"""One talk with the server: news up, and commands, kills and the freeze down."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from fleet.agent import facts, message
from fleet.agent.answer import Answer, AnswerError, read_answer
from fleet.agent.checks import Accept, Ignore, Known, Refuse, examine
from fleet.agent.clock import ServerClock
from fleet.agent.enrolment import problem
from fleet.agent.gate import Gate
from fleet.agent.identity import IdentityFile
from fleet.agent.journal import Journal
from fleet.agent.last_word import LastWordFile
from fleet.agent.local_schedules import LocalSchedules
from fleet.agent.outbox import Outbox
from fleet.agent.pace import Pace
from fleet.agent.transport import Reply, Transport, UnreachableError
from fleet.agent.work import Work
from scheduler.rules.contained import contained

logger = logging.getLogger(__name__)

PATH = "/api/agent/v1/exchange"
_OK = 200
_BUSY = {408, 425, 429, 503}
# The message itself was not liked: one result in it may be the reason.
_BAD_MESSAGE = {400, 413, 415, 422}
_REFUSALS = {
    401: "the server does not know this agent any more",
    403: "the server has not accepted this agent",
    409: "another machine holds this identity; an operator must accept one",
}


@dataclass(frozen=True, slots=True)
class Talk:
    """How an exchange went and when the next is due."""

    ok: bool
    next_in_s: float
    ticket: str = ""
    came: int = 0
    problem: str = ""
    is_refusal: bool = False


class Exchange:
    """The exchanges of one agent, one after the other."""

    def __init__(
        self,
        *,
        identity: IdentityFile,
        transport: Transport,
        work: Work,
        outbox: Outbox,
        journal: Journal,
        gate: Gate,
        clock: ServerClock,
        pace: Pace,
        local: LocalSchedules,
        last_word: LastWordFile,
        read_facts: Callable[[], dict[str, object]] = facts.facts,
    ) -> None:
        self._identity, self._transport = identity, transport
        self._work, self._outbox, self._journal = work, outbox, journal
        self._gate, self._clock, self._pace = gate, clock, pace
        self._local, self._last_word = local, last_word
        self._read_facts = read_facts
        self._known_facts: dict[str, object] | None = None
        self._machine = (facts.boot_id(), facts.fingerprint())
        # A start asks for a new epoch; what another start has had since is refused by the server.
        self._epoch: int | None = None
        self._one_by_one = False

    def once(self) -> Talk:
        """Talk once; every outcome is a Talk."""
        news = message.gather(self._work, self._outbox, one_by_one=self._one_by_one)
        told = self._facts()
        asked_at = self._clock.steady()
        try:
            reply = self._send(news, told)
        except (UnreachableError, OSError) as error:
            return self._failed(str(error))
        if reply.status != _OK:
            return self._not_ok(reply, news)
        try:
            answer = read_answer(reply.body)
        except AnswerError as error:
            return self._failed(f"the server's answer cannot be read: {error}")
        self._clock.learn(answer.server_time, asked_at=asked_at, answered_at=self._clock.steady())
        self._known_facts, self._one_by_one = told, False
        return self._act(answer, news)

    def _facts(self) -> dict[str, object]:
        """What the PC says of itself, and which bundle of schedules it has, once it has one."""
        etag = self._local.etag
        return self._read_facts() | ({"schedules_etag": etag} if etag else {})

    def _send(self, news: message.News, told: dict[str, object]) -> Reply:
        boot_id, fingerprint = self._machine
        body = message.encode(
            news,
            epoch=self._epoch,
            seq=self._identity.next_seq(),
            boot_id=boot_id,
            fingerprint=fingerprint,
            facts=told if told != self._known_facts else None,
            holding=self._work.holding(),
            steady_s=self._clock.steady(),
        )
        credential = self._identity.current.credential
        return self._transport.request("POST", PATH, body=body, credential=credential)

    def _act(self, answer: Answer, news: message.News) -> Talk:
        self._epoch = answer.epoch
        # What forbids comes before what could be started.
        self._gate.set_freeze(answer.freeze)
        self._gate.kill(answer.kill)
        self._gate.hold("")
        with contained("what the server said could not be kept"):
            self._journal.settle(self._clock.require_now())
            self._last_word.write(answer.freeze, answer.server_time)
        self._tick_off(news, answer.verdicts)
        came = sum(self._take(value) for value in answer.commands)
        if answer.schedules is not None:
            with contained("the schedules could not be kept"):
                self._local.adopt(answer.schedules)
        self._keep_credential(answer.credential)
        next_in_s = self._pace.after_success(answer.next_in_s)
        return Talk(ok=True, next_in_s=next_in_s, ticket=answer.ticket, came=came)

    def _tick_off(self, news: message.News, verdicts: dict[str, str]) -> None:
        self._work.told(news.started)
        for run, chunk in news.live:
            run.output.sent(chunk)
        for command in news.result_ids:
            verdict = verdicts.get(command, "")
            if verdict == "conflict":
                logger.error("the server holds another result of %s", command)
            if not self._outbox.settle(command, verdict):
                logger.warning("the server did not answer for the result of %s", command)
        self._work.report_lost()
        self._work.forget({name for name, word in verdicts.items() if word == "unknown"})

    def _take(self, value: object) -> bool:
        """Judge one command that was handed over; whether it is held now."""
        with contained("a command could not be taken"):
            now = self._clock.require_now()
            pinned = self._identity.current.pinned
            match examine(value, pinned=pinned, memory=self._journal, now=now):
                case Accept(command):
                    self._identity.raise_epoch(command.server_epoch)
                    return self._work.accept(command)
                case Refuse(command, outcome, reason):
                    logger.warning("command %s: %s: %s", command, outcome, reason)
                    self._work.refuse(command, outcome, reason)
                case Known(entry):
                    self._work.report_again(entry)
                case Ignore(reason):
                    logger.warning("something that is no command was handed over: %s", reason)
        return False

    def _keep_credential(self, offered: str | None) -> None:
        with contained("a credential could not be kept"):
            self._identity.confirm()
            if offered is not None:
                self._identity.adopt(offered)

    def _not_ok(self, reply: Reply, news: message.News) -> Talk:
        words = problem(reply)
        if reply.status in _BUSY:
            return self._failed(words, reply.retry_after_s)
        if reply.status == 401 and self._falls_back():  # noqa: PLR2004  # the number is the name
            return self._failed(f"{words}; the older credential is tried")
        if reply.status in _REFUSALS:
            reason = _REFUSALS[reply.status]
            self._gate.hold(reason)
            delay = self._pace.after_refusal()
            return Talk(ok=False, next_in_s=delay, problem=f"{reason} ({words})", is_refusal=True)
        if reply.status in _BAD_MESSAGE:
            self._isolate(news)
        return self._failed(words, reply.retry_after_s)

    def _falls_back(self) -> bool:
        try:
            return self._identity.fall_back()
        except OSError as error:
            logger.warning("the older credential could not be restored: %s", error)
            return False

    def _isolate(self, news: message.News) -> None:
        """Find the result that spoils the message: alone next time, and later when it was alone."""
        if self._one_by_one or len(news.results) == 1:
            for command in news.result_ids:
                self._outbox.postpone(command)
        self._one_by_one = True

    def _failed(self, words: str, retry_after_s: float | None = None) -> Talk:
        delay = self._pace.after_failure(retry_after_s)
        return Talk(ok=False, next_in_s=delay, problem=words)
