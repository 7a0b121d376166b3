"""Asks an ASGI application as a server would."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

Message = MutableMapping[str, Any]
App = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Any
]


@dataclass
class Answer:
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    parts: list[bytes] = field(default_factory=list)

    @property
    def body(self) -> bytes:
        return b"".join(self.parts)


def scope(path: str = "/", *, method: str = "GET", query: str = "", **headers: str) -> Message:
    """The scope of a request; `X_name=` becomes the header `x-name`."""
    return {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "scheme": "http",
        "server": ("127.0.0.1", 8000),
        "client": ("10.0.0.7", 4711),
        "headers": [
            (name.lower().replace("_", "-").encode(), value.encode())
            for name, value in headers.items()
        ],
    }


async def ask(app: App, request: Message, *pieces: bytes, complete: bool = True) -> Answer:
    """Send a request whose body comes in pieces; without `complete` the client goes away."""
    last = len(pieces) - 1
    messages: list[Message] = [
        {"type": "http.request", "body": piece, "more_body": index < last or not complete}
        for index, piece in enumerate(pieces or (b"",))
    ]
    messages.append({"type": "http.disconnect"})
    answer = Answer()

    async def receive() -> Message:
        return messages.pop(0)

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            answer.headers = {n.decode(): v.decode("latin-1") for n, v in message["headers"]}
        else:
            answer.parts.append(message["body"])

    async with asyncio.timeout(30):
        await app(request, receive, send)
    return answer
