"""A server for the agent's tests: a real socket, the protocol, and faults on demand."""

import json
import threading
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from fleet.agent.commands import Command
from tests.fleet.agent.make import (
    AGENT_ID,
    NOW,
    PUBLIC_KEY,
    SERVER_ID,
    payload_of,
    sealed,
)

JSON = dict[str, Any]
CREDENTIAL = f"kag1_{AGENT_ID}_{'s' * 43}_00000000"


@dataclass
class Response:
    """What goes back over the wire."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    # Close the connection instead of answering: the server did its work and the reply is lost.
    lost: bool = False


def as_json(status: int, value: object, **headers: str) -> Response:
    return Response(status, json.dumps(value).encode(), headers)


Fault = Callable[[JSON], Response | None]


class _Quiet(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is what some tests are about."""


class FakeServer:
    """Hands out what is neither held nor started nor answered for, as the real one does."""

    def __init__(self) -> None:
        self.now: Callable[[], datetime] = lambda: NOW
        self.freeze: JSON = {
            "frozen": False,
            "reason": "",
            "from": None,
            "until": None,
            "unreadable": False,
        }
        self.pending: dict[str, object] = {}
        self.exchanges: list[JSON] = []
        self.enrolments: list[JSON] = []
        self.credentials: list[str] = []
        self.results: dict[str, JSON] = {}
        self.started: list[JSON] = []
        self.output: list[JSON] = []
        self.kill: list[str] = []
        self.extra: JSON = {}
        self.valid_credentials = {CREDENTIAL}
        self.next_in_s = 0.3
        self.epoch = 0
        self.waits = 0
        self.wake = threading.Event()
        # Each request meets the first fault that answers something; None lets it pass.
        self.faults: list[Fault] = []
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"fake": self})
        self._server = _Quiet(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self.wake.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def give(self, *commands: Command) -> None:
        """Have commands handed out with the next exchange."""
        for command in commands:
            self.pending[command.id] = sealed(payload_of(command))

    def once(self, response: Response) -> None:
        """Answer the next exchange with this, without looking at it."""

        def fault(_: JSON) -> Response:
            self.faults.remove(fault)
            return response

        self.faults.append(fault)

    def lose_reply(self) -> None:
        """Do the work of the next exchange and lose its answer, also when it is asked again."""
        left = [True, True]

        def fault(body: JSON) -> Response | None:
            left.pop()
            if not left:
                self.faults.remove(fault)
            self.answer(body)
            return Response(0, lost=True)

        self.faults.append(fault)

    def exchange(self, body: JSON, credential: str) -> Response:
        if not body:
            return as_json(400 if credential in self.valid_credentials else 401, {})
        with self._lock:
            self.exchanges.append(body)
            self.credentials.append(credential)
            for fault in list(self.faults):
                response = fault(body)
                if response is not None:
                    return response
            if credential not in self.valid_credentials:
                return as_json(401, {"title": "Unauthorized", "status": 401})
            return as_json(200, self.answer(body))

    def answer(self, body: JSON) -> JSON:
        verdicts = {}
        for result in body["results"]:
            command = result["command"]
            before = self.results.setdefault(command, result)
            verdicts[command] = "stored" if before is result else "duplicate"
            self.pending.pop(command, None)
        self.started += body["started"]
        self.output += body["output"]
        if body["epoch"] is None:
            self.epoch += 1
        known = {*body["holding"], *(event["command"] for event in self.started)}
        commands = [value for name, value in self.pending.items() if name not in known]
        return {
            "server_time": self.now().isoformat(),
            "epoch": self.epoch,
            "wait_ticket": "ticket-1",
            "verdicts": verdicts,
            "commands": commands,
            "kill": list(self.kill),
            "freeze": dict(self.freeze),
            "schedules_etag": "",
            "schedules": None,
            "next_in_s": self.next_in_s,
            **self.extra,
        }

    def enrol(self, body: JSON) -> Response:
        with self._lock:
            self.enrolments.append(body)
            for fault in list(self.faults):
                response = fault(body)
                if response is not None:
                    return response
        return as_json(201, self.enrolled())

    def enrolled(self, **fields: object) -> JSON:
        return {
            "agent_id": AGENT_ID,
            "credential": CREDENTIAL,
            "server_id": SERVER_ID,
            "server_key": b64encode(PUBLIC_KEY).decode(),
            "server_epoch": 1,
            "server_time": NOW.isoformat(),
            "state": "active",
            **fields,
        }

    def wait(self) -> Response:
        self.waits += 1
        self.wake.wait(30)
        self.wake.clear()
        return as_json(200, {"wake": True})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fake: FakeServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/api/agent/v1/enrol":
            self._send(self.fake.enrol(body))
            return
        credential = self.headers.get("Authorization", "").removeprefix("Bearer ")
        self._send(self.fake.exchange(body, credential))

    def do_GET(self) -> None:
        if self.path == "/healthz":
            self._send(as_json(200, {}))
        elif self.path.startswith("/api/agent/v1/wait?"):
            self._send(self.fake.wait())
        else:
            self._send(as_json(404, {}))

    def _send(self, response: Response) -> None:
        if response.lost:
            self.close_connection = True
            return
        self.send_response(response.status)
        headers = {"Content-Type": "application/json"} | response.headers
        headers.setdefault("Content-Length", str(len(response.body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(response.body)

    def log_message(self, format: str, *args: object) -> None:
        pass
