"""`GET /api/agent/v1/wait`: an agent waits to be called, without a thread and without a query.

Plain ASGI, in front of Django: an asynchronous view of Django's holds a thread for each waiter. The
answer is a hint and nothing else: 200 = there may be something, 204 = come back by yourself.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs

from fleet.agent_api.waiting_room import FullError, WaitingRoom
from fleet.rules.tickets import read_ticket

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

PATH = "/api/agent/v1/wait"
SHORTEST, DEFAULT, LONGEST = 1.0, 50.0, 60.0
MAX_QUERY = 200
RETRY_AFTER = "5"


class WaitingApp:
    """The ASGI application of the one path."""

    def __init__(self, room: WaitingRoom, *, key: bytes, clock: Callable[[], datetime]) -> None:
        self._room = room
        self._key = key
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["method"] != "GET":
            await _problem(send, 405, "Method Not Allowed", headers={"allow": "GET"})
            return
        words = _query(scope)
        ticket = read_ticket(words.get("ticket", ""), key=self._key, now=self._clock())
        if ticket is None:
            await _problem(send, 401, "Unauthorized", headers={"www-authenticate": "Bearer"})
            return
        seconds = _seconds(words.get("timeout", ""))
        waiting = self._room.wait(ticket.agent_id, since=ticket.issued_at, seconds=seconds)
        try:
            called = await _unless_gone(waiting, receive)
        except asyncio.CancelledError:
            # The server stops: the agent is told to come back by itself, to whoever answers then.
            called = False
        except FullError:
            busy = {"retry-after": RETRY_AFTER}
            await _problem(send, 503, "Service Unavailable", headers=busy)
            return
        if called:
            await _answer(send, 200, b'{"wake":true}', "application/json", {})
        else:
            await _answer(send, 204, b"", None, {})


async def _unless_gone(waiting: Coroutine[Any, Any, bool], receive: Receive) -> bool:
    """Return what the wait comes to; end it when the agent hangs up."""
    wait = asyncio.ensure_future(waiting)
    gone = asyncio.ensure_future(_hung_up(receive))
    try:
        await asyncio.wait({wait, gone}, return_when=asyncio.FIRST_COMPLETED)
        return wait.result() if wait.done() else False
    finally:
        wait.cancel()
        gone.cancel()


async def _hung_up(receive: Receive) -> None:
    while (await receive()).get("more_body", False):
        pass
    # After the body there is only one thing left that a server says.
    await receive()


def _query(scope: Scope) -> dict[str, str]:
    raw = bytes(scope.get("query_string", b""))
    if len(raw) > MAX_QUERY:
        return {}
    return {name: values[-1] for name, values in parse_qs(raw.decode("latin-1")).items()}


def _seconds(text: str) -> float:
    """Return how long to wait: what is asked for within bounds, else the default."""
    if not (text.isascii() and text.isdigit()):
        return DEFAULT
    return min(max(float(text), SHORTEST), LONGEST)


async def _problem(send: Send, status: int, title: str, *, headers: dict[str, str]) -> None:
    body = json.dumps({"type": "about:blank", "title": title, "status": status}).encode()
    await _answer(send, status, body, "application/problem+json", headers)


async def _answer(
    send: Send, status: int, body: bytes, content_type: str | None, extra: dict[str, str]
) -> None:
    headers = {"cache-control": "no-store", **extra}
    if content_type is not None:
        headers |= {"content-type": content_type, "content-length": str(len(body))}
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})
