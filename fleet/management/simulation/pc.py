"""One simulated PC: it enrols, exchanges, waits to be called, and pretends to run scripts."""

import asyncio
import hashlib
import json
import secrets
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from fleet.agent import enrolment, exchange, waiter
from fleet.agent.answer import Answer, AnswerError, read_answer
from fleet.agent.clock import ServerClock
from fleet.agent.envelope import EnvelopeError
from fleet.agent.fields import FieldError
from fleet.agent.identity import Identity, read_identity
from fleet.agent.message import PROTOCOL
from fleet.agent.pace import SHORTEST_S, Pace
from fleet.agent.transport import Reply, UnreachableError
from fleet.management.simulation.connection import Connection
from fleet.management.simulation.tally import Tally
from fleet.management.simulation.work import Work

FACTS = {
    "zone": "UTC",
    "os": "Linux simulated x86_64",
    "shells": ["sh", "bash", "python"],
    "code_page": "utf-8",
    "agent_version": "simulated",
}
_OK, _CREATED, _NO_CONTENT, _TOO_MANY, _AWAY = 200, 201, 204, 429, 503
_SLACK_S = 15.0


@dataclass(frozen=True, slots=True)
class Habits:
    """What all PCs of a simulation have in common; waiting may be answered elsewhere."""

    server: str
    wait_server: str
    token: str
    output_bytes: int
    longest_run_s: float


class Pc:
    """One agent. Everything of it happens on one event loop."""

    def __init__(
        self,
        name: str,
        habits: Habits,
        connections: tuple[Connection, Connection],
        tally: Tally,
        clock: Callable[[], datetime],
    ) -> None:
        self.name = name
        self.agent_id = ""
        self._habits, self._tally, self._clock = habits, tally, clock
        self._talking, self._waiting = connections
        self._boot_id = secrets.token_hex(8)
        self._fingerprint = hashlib.sha256(f"{name} {self._boot_id}".encode()).hexdigest()
        self._epoch: int | None = None
        self._seq = 0
        self._server_clock, self._pace = ServerClock(), Pace()
        self._bell = asyncio.Event()
        self._wait: asyncio.Task[None] | None = None

    async def live(self) -> None:
        """Enrol, then work until cancelled."""
        try:
            identity = await self._enrolled()
            work = Work(identity.server_key, self._habits.output_bytes, self._habits.longest_run_s)
            while True:
                ticket, next_in_s = await self._talk(identity, work)
                if ticket and (self._wait is None or self._wait.done()):
                    self._wait = asyncio.create_task(self._wait_to_be_called(ticket))
                await self._until_due(work, next_in_s)
        finally:
            if self._wait is not None:
                self._wait.cancel()
            self._talking.close()
            self._waiting.close()

    async def _enrolled(self) -> Identity:
        body = {
            "protocol": PROTOCOL,
            "token": self._habits.token,
            "name": self.name,
            "nonce": secrets.token_urlsafe(32),
            "fingerprint": self._fingerprint,
            "facts": FACTS,
        }
        while True:
            reply = await self._asked(enrolment.PATH, body)
            if isinstance(reply, Reply) and reply.status == _CREATED:
                found = read_identity(
                    json.loads(reply.body), server=self._habits.server, name=self.name
                )
                self.agent_id = found.agent_id
                self._tally.counts["enrolled"] += 1
                return found
            await asyncio.sleep(self._delay(reply, "enrolment"))

    async def _talk(self, identity: Identity, work: Work) -> tuple[str, float]:
        """Exchange once; the ticket to wait with and the seconds until the next time."""
        self._bell.clear()
        body = self._message(work)
        sent, told = list(work.results), list(work.running)
        asked_at = self._server_clock.steady()
        reply = await self._asked(exchange.PATH, body, credential=identity.credential)
        answered_at = self._server_clock.steady()
        try:
            if not isinstance(reply, Reply) or reply.status != _OK:
                return "", self._delay(reply, "exchange")
            answer = read_answer(reply.body)
            self._server_clock.learn(answer.server_time, asked_at=asked_at, answered_at=answered_at)
            came = self._act(work, answer, sent, told)
        except (AnswerError, EnvelopeError, FieldError) as error:
            return "", self._delay(UnreachableError(str(error)), "exchange")
        carried = bool(sent or body["started"] or came)
        self._tally.note_exchange(answered_at - asked_at, carried=carried)
        return answer.ticket, self._pace.after_success(answer.next_in_s)

    def _message(self, work: Work) -> dict[str, object]:
        self._seq += 1
        body: dict[str, object] = {
            "protocol": PROTOCOL,
            "epoch": self._epoch,
            "seq": self._seq,
            "boot_id": self._boot_id,
            "fingerprint": self._fingerprint,
            "sent_at": self._clock().isoformat(),
            "mono": round(self._server_clock.steady(), 3),
            "holding": work.holding(),
            "started": work.starts(),
            "results": list(work.results.values()),
            "output": _live_output(work),
        }
        return body | ({"facts": FACTS} if self._epoch is None else {})

    def _act(self, work: Work, answer: Answer, sent: list[str], told: list[str]) -> int:
        """Take what the server said; how many commands came."""
        self._epoch = answer.epoch
        work.freeze = answer.freeze
        work.killed.update(set(answer.kill) & {*work.queued, *work.running})
        for name in told:
            if name in work.running:
                work.running[name].is_told = True
        for name in sent:
            if answer.verdicts.get(name) in {"stored", "duplicate", "unknown"}:
                del work.results[name]
                self._tally.counts["results"] += 1
        came = sum(work.take(value) for value in answer.commands)
        self._tally.counts["commands"] += came
        return came

    async def _until_due(self, work: Work, next_in_s: float) -> None:
        """Return when the server should hear from this PC: news, a call, or its word."""
        loop = asyncio.get_running_loop()
        last = loop.time() + next_in_s
        await asyncio.sleep(SHORTEST_S)
        while (left := last - loop.time()) > 0 and not self._bell.is_set():
            now = self._server_clock.now()
            started, nap = work.step(now) if now is not None else (0, left)
            self._tally.counts["started"] += started
            if work.has_news():
                return
            try:
                async with asyncio.timeout(min(left, nap)):
                    await self._bell.wait()
            except TimeoutError:
                continue

    async def _wait_to_be_called(self, ticket: str) -> None:
        path = f"{waiter.PATH}?ticket={quote(ticket, safe='')}&timeout={waiter.WAIT_S}"
        while True:
            self._tally.counts["waits"] += 1
            try:
                reply = await self._waiting.request("GET", path, timeout_s=waiter.WAIT_S + _SLACK_S)
            except UnreachableError as error:
                self._tally.problems[f"wait: {error}"] += 1
                return
            if reply.status == _OK:
                self._tally.counts["calls"] += 1
                self._bell.set()
            elif reply.status not in {_NO_CONTENT, _AWAY}:
                self._tally.problems[f"wait: {reply.status}"] += 1
            if reply.status != _NO_CONTENT:
                return

    async def _asked(
        self, path: str, body: dict[str, object], *, credential: str = ""
    ) -> Reply | UnreachableError:
        try:
            return await self._talking.request(
                "POST", path, body=json.dumps(body).encode(), credential=credential
            )
        except UnreachableError as error:
            return error

    def _delay(self, reply: Reply | UnreachableError, what: str) -> float:
        """Count what went wrong; the seconds until the next try."""
        if isinstance(reply, UnreachableError):
            self._tally.problems[f"{what}: {reply}"[:200]] += 1
            return self._pace.after_failure(reply.retry_after_s)
        if reply.status == _TOO_MANY:
            # The server keeps its pace, and lets only a few in at a time: that is no error.
            self._tally.counts["told to wait"] += 1
        else:
            self._tally.problems[f"{what}: {enrolment.problem(reply)}"[:200]] += 1
        return self._pace.after_failure(reply.retry_after_s)


def _live_output(work: Work) -> list[dict[str, object]]:
    """The first half of each output, once, while the rest is still to come."""
    pieces: list[dict[str, object]] = []
    for name, run in work.running.items():
        half = run.output[: len(run.output) // 2]
        if half and not run.live_sent:
            run.live_sent = True
            text = b64encode(half).decode()
            pieces.append({"command": name, "stream": "stdout", "offset": 0, "bytes": text})
    return pieces
