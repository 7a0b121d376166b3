"""HTTP for thousands of simulated agents on one event loop: kept connections, bounded answers."""

import asyncio
import ssl
from pathlib import Path

from fleet.agent.address import Server
from fleet.agent.transport import MAX_BYTES, Reply, UnreachableError

_MOST_HEAD_BYTES = 64 * 1024
_LINE = b"\r\n"


def tls_context(server: Server, ca: Path | None) -> ssl.SSLContext | None:
    """Return what connections to the server are encrypted with; one context serves them all."""
    if not server.is_encrypted:
        return None
    return ssl.create_default_context(cafile=None if ca is None else str(ca))


class Connection:
    """One kept connection, for one request at a time."""

    def __init__(self, server: Server, context: ssl.SSLContext | None) -> None:
        self._server, self._context = server, context
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes = b"",
        credential: str = "",
        timeout_s: float = 30.0,
    ) -> Reply:
        """Return the answer; UnreachableError when there is none within `timeout_s` seconds."""
        kept = self._streams is not None
        try:
            async with asyncio.timeout(timeout_s):
                return await self._ask(_written(method, path, self._server, body, credential))
        except (ConnectionError, asyncio.IncompleteReadError) as error:
            self.close()
            if not kept:
                raise UnreachableError(_words(error)) from error
        except (OSError, ValueError, asyncio.LimitOverrunError) as error:
            self.close()
            raise UnreachableError(_words(error)) from error
        except asyncio.CancelledError:
            # The answer would be read by the next request.
            self.close()
            raise
        # The server had closed the kept connection meanwhile: asked again on a new one.
        return await self.request(
            method, path, body=body, credential=credential, timeout_s=timeout_s
        )

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def _ask(self, message: bytes) -> Reply:
        if self._streams is None:
            self._streams = await asyncio.open_connection(
                self._server.host, self._server.port, ssl=self._context, limit=_MOST_HEAD_BYTES
            )
        reader, writer = self._streams
        writer.write(message)
        await writer.drain()
        status, headers = _head(await reader.readuntil(_LINE + _LINE))
        body = await _body(reader, headers)
        if headers.get("connection", "").lower() == "close":
            self.close()
        return Reply(status, body, _seconds(headers.get("retry-after", "")))


def _written(method: str, path: str, server: Server, body: bytes, credential: str) -> bytes:
    lines = [
        f"{method} {server.path}{path} HTTP/1.1",
        f"Host: {server.host}:{server.port}",
        "Accept: application/json",
        "User-Agent: kanade-simulation",
    ]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    if credential:
        lines.append(f"Authorization: Bearer {credential}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def _head(data: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = data.decode("latin-1").split("\r\n")
    parts = (line.partition(":") for line in lines if line)
    return int(first.split(" ")[1]), {name.lower(): value.strip() for name, _, value in parts}


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return await _chunked(reader)
    length = int(headers.get("content-length", "0"))
    if not 0 <= length <= MAX_BYTES:
        raise ValueError(f"the answer has more than {MAX_BYTES} bytes")
    return await reader.readexactly(length)


async def _chunked(reader: asyncio.StreamReader) -> bytes:
    data = b""
    while size := int((await reader.readuntil(_LINE)).split(b";")[0], 16):
        if len(data) + size > MAX_BYTES:
            raise ValueError(f"the answer has more than {MAX_BYTES} bytes")
        data += (await reader.readexactly(size + len(_LINE)))[:size]
    await reader.readuntil(_LINE)
    return data


def _seconds(text: str) -> float | None:
    return float(text) if text.isascii() and text.isdigit() else None


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
