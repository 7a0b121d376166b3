"""HTTP to the one server: encrypted off this machine, bounded both ways, through a proxy if set.

No redirect is followed, because it would carry the credential elsewhere, and nothing compressed is
taken, because a few bytes could become gigabytes.
"""

import http.client
import ssl
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

from fleet.agent.address import (
    AddressError,
    Server,
    proxy_for,
    proxy_headers,
)
from fleet.agent.clock import steady_seconds
from fleet.agent.facts import AGENT_VERSION

MAX_BYTES = 4 * 1024 * 1024
TIMEOUT_S = 30.0
_READ_BYTES = 64 * 1024
_MOST_RETRY_AFTER_S = 3600.0


class UnreachableError(Exception):
    """No answer that can be taken; the message says what happened."""

    def __init__(self, words: str, retry_after_s: float | None = None) -> None:
        super().__init__(words)
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer of the server, whatever its status."""

    status: int
    body: bytes
    retry_after_s: float | None = None
    media_type: str = ""
    # When the server says that it answered; None where it does not say.
    date: datetime | None = None


class Transport:
    """A kept connection to the server, for one thread."""

    def __init__(self, server: Server, *, ca: Path | None = None) -> None:
        """`ca` is a file with the only certificate authorities to trust; else the system's."""
        self._server = server
        self._context = _context(ca) if server.is_encrypted else None
        self._proxy = proxy_for(server)
        self._connection: http.client.HTTPConnection | None = None

    def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        credential: str | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> Reply:
        """Return the answer; UnreachableError when there is none within about `timeout_s`."""
        headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": f"kanade-agent/{AGENT_VERSION}",
        }
        if body is not None:
            headers["Content-Type"] = "application/json"
        if credential is not None:
            headers["Authorization"] = f"Bearer {credential}"
        kept = self._connection is not None
        try:
            return self._ask(method, path, body, headers, timeout_s)
        except (http.client.RemoteDisconnected, ConnectionError) as error:
            self.close()
            if not kept:
                raise UnreachableError(_words(error)) from error
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise UnreachableError(_words(error)) from error
        # The server had closed the kept connection meanwhile: asked again on a new one.
        return self.request(method, path, body=body, credential=credential, timeout_s=timeout_s)

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ask(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], timeout_s: float
    ) -> Reply:
        last = steady_seconds() + timeout_s
        connection = self._connection or self._connect()
        self._connection = connection
        connection.timeout = timeout_s
        if connection.sock is not None:
            connection.sock.settimeout(timeout_s)
        connection.request(method, self._server.path + path, body=body, headers=headers)
        response = connection.getresponse()
        data = _read(response, last)
        if response.will_close:
            self.close()
        return Reply(
            response.status,
            data,
            retry_after_s=_retry_after(response),
            media_type=response.headers.get_content_type(),
            date=_date(response),
        )

    def _connect(self) -> http.client.HTTPConnection:
        server, proxy = self._server, self._proxy
        if self._context is None:
            return http.client.HTTPConnection(server.host, server.port, timeout=TIMEOUT_S)
        if proxy is None:
            return http.client.HTTPSConnection(
                server.host, server.port, timeout=TIMEOUT_S, context=self._context
            )
        connection = http.client.HTTPSConnection(
            str(proxy.hostname), proxy.port or 8080, timeout=TIMEOUT_S, context=self._context
        )
        connection.set_tunnel(server.host, server.port, headers=proxy_headers(proxy))
        return connection


def _context(ca: Path | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=None if ca is None else str(ca))
    except OSError as error:
        raise AddressError(f"the file {ca} holds no certificate authority: {error}") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _read(response: http.client.HTTPResponse, last: float) -> bytes:
    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise http.client.HTTPException("the answer is compressed, which was not asked for")
    data = bytearray()
    while block := response.read(_READ_BYTES):
        data += block
        if len(data) > MAX_BYTES:
            raise http.client.HTTPException(f"the answer has more than {MAX_BYTES} bytes")
        if steady_seconds() > last:
            raise TimeoutError("the answer took too long")
    if response.length:
        raise http.client.HTTPException(f"the answer lacks {response.length} bytes")
    return bytes(data)


def _retry_after(response: http.client.HTTPResponse) -> float | None:
    """Seconds, also where the server names a date; that is counted from its own clock."""
    text = response.headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:6]), _MOST_RETRY_AFTER_S)
    try:
        then = parsedate_to_datetime(text)
        now = parsedate_to_datetime(response.headers.get("Date", ""))
        seconds = (then - now).total_seconds()
    except (ValueError, TypeError):
        return None
    return min(max(0.0, seconds), _MOST_RETRY_AFTER_S)


def _date(response: http.client.HTTPResponse) -> datetime | None:
    try:
        return parsedate_to_datetime(response.headers.get("Date", ""))
    except (ValueError, TypeError):
        return None


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
