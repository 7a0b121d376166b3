"""Serves a WSGI application from an event loop with a fixed number of threads.

A request takes a thread only once its whole body is here, and an answer of ordinary size gives it
back before the client has read a byte, so that slow clients cost memory and no thread. More
requests than `longest_queue` are told to come back later instead of being queued.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import Any
from wsgiref.types import WSGIApplication

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

# The largest body that a view reads is an exchange of 4 MiB; it answers for what is beyond.
MAX_BODY = 5 * 1024 * 1024
BODY_SECONDS = 30.0
# An answer up to here is collected; a longer one holds its thread while the client reads.
COLLECTED = 1024 * 1024
SEND_SECONDS = 60.0
WITHOUT_A_BODY = {204, 304}


class DisconnectedError(Exception):
    """The client went away before its request was complete."""


class Bridge:
    """The ASGI face of a WSGI application."""

    def __init__(
        self, application: WSGIApplication, *, threads: int, longest_queue: int = 1_000
    ) -> None:
        self._application = application
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="web")
        self._longest_queue = longest_queue
        self._inside = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        if self._inside >= self._longest_queue:
            await _refuse(send, 503, b"The server is busy.\n", retry_after=b"5")
            return
        self._inside += 1
        try:
            await self._answer(scope, receive, send)
        finally:
            self._inside -= 1

    def free_threads(self) -> int:
        """How many more requests would find a thread at once."""
        return max(0, self._threads - self._inside)

    def close(self) -> None:
        """Let the threads end once they have nothing to do."""
        self._pool.shutdown(wait=False)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await _read(receive)
        except DisconnectedError:
            return
        except TimeoutError:
            await _refuse(send, 408, b"The request did not arrive in time.\n")
            return
        if body is None:
            await _refuse(send, 413, b"The request is too large.\n")
            return
        loop = asyncio.get_running_loop()
        answer = _Answer(send, loop)
        await loop.run_in_executor(self._pool, answer.run, self._application, _environ(scope, body))
        await answer.finish()


class _Answer:
    """Runs the application in a thread and passes on what it answers."""

    def __init__(self, send: Send, loop: asyncio.AbstractEventLoop) -> None:
        self._send = send
        self._loop = loop
        self._start: Message | None = None
        self._parts: list[bytes] = []
        self._size = 0

    def run(self, application: WSGIApplication, environ: dict[str, Any]) -> None:
        """Call the application and take its answer, in a thread."""
        chunks = application(environ, self._start_response)
        try:
            self._take(chunks)
        finally:
            # Closing ends Django's request: it gives the database connection back.
            close = getattr(chunks, "close", None)
            if close is not None:
                close()

    async def finish(self) -> None:
        """Send what is left."""
        await self._pass_on(last=True)

    def _start_response(
        self, status: str, headers: list[tuple[str, str]], _exc_info: object = None
    ) -> Callable[[bytes], object]:
        # Django begins its cookies with a blank, which the stricter protocol refuses.
        encoded = [
            (name.lower().encode("latin-1"), value.strip().encode("latin-1"))
            for name, value in headers
        ]
        code = int(status.split(" ", 1)[0])
        self._start = {"type": "http.response.start", "status": code, "headers": encoded}
        return self._keep

    def _take(self, chunks: Iterable[bytes]) -> None:
        for chunk in chunks:
            self._keep(chunk)
            if self._size > COLLECTED:
                sending = asyncio.run_coroutine_threadsafe(self._pass_on(last=False), self._loop)
                sending.result(SEND_SECONDS)

    def _keep(self, chunk: bytes) -> None:
        self._parts.append(chunk)
        self._size += len(chunk)

    async def _pass_on(self, *, last: bool) -> None:
        body, self._parts, self._size = b"".join(self._parts), [], 0
        if self._start is not None:
            start, self._start = self._start, None
            if last:
                _tell_length(start, len(body))
            await self._send(start)
        await self._send({"type": "http.response.body", "body": body, "more_body": not last})


def _tell_length(start: Message, length: int) -> None:
    """Add the length to an answer that is here as a whole, which then needs no chunks."""
    headers: Headers = start["headers"]
    told = any(name == b"content-length" for name, _ in headers)
    if not told and start["status"] not in WITHOUT_A_BODY:
        headers.append((b"content-length", str(length).encode()))


async def _read(receive: Receive) -> bytes | None:
    """Return the request's body, or None when it is too large."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise DisconnectedError
        body += message.get("body", b"")
        if len(body) > MAX_BODY:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _environ(scope: Scope, body: bytes) -> dict[str, Any]:
    """Return the WSGI environment of a request; PEP 3333 wants texts as Latin-1."""
    server = scope.get("server") or ("localhost", 80)
    environ: dict[str, Any] = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": scope.get("root_path", "").encode().decode("latin-1"),
        "PATH_INFO": scope["path"].encode().decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "SERVER_NAME": server[0],
        "SERVER_PORT": str(server[1]),
        "REMOTE_ADDR": (scope.get("client") or ("", 0))[0],
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.get("scheme", "http"),
        "wsgi.input": BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for raw_name, raw_value in scope["headers"]:
        _add_header(environ, raw_name.decode("latin-1"), raw_value.decode("latin-1"))
    return environ


def _add_header(environ: dict[str, Any], name: str, value: str) -> None:
    # `X_Forwarded_Proto` would become the same variable as the proxy's `X-Forwarded-Proto`.
    if "_" in name or name in {"content-length", "transfer-encoding"}:
        return
    key = "CONTENT_TYPE" if name == "content-type" else f"HTTP_{name.upper().replace('-', '_')}"
    joint = "; " if key == "HTTP_COOKIE" else ","
    environ[key] = f"{environ[key]}{joint}{value}" if key in environ else value


async def _refuse(send: Send, status: int, text: bytes, *, retry_after: bytes = b"") -> None:
    headers: Headers = [(b"content-type", b"text/plain"), (b"cache-control", b"no-store")]
    headers.append((b"connection", b"close"))
    if retry_after:
        headers.append((b"retry-after", retry_after))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text})
