"""`--check`, the server's part: is it there, does it know this PC, do the clocks agree?

Nothing is changed by asking: the question about the credential is a message that no server takes.
"""

import re
import socket
import ssl
import zlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fleet.agent import enrolment, exchange
from fleet.agent.address import Server, read_address
from fleet.agent.identity import Identity
from fleet.agent.transport import Reply, Transport, UnreachableError
from scheduler.rules.durations import format_duration

HEALTH = "/healthz"
TIMEOUT_S = 10.0
# The agent goes by the server's time; certificates and scripts go by the PC's.
MOST_SKEW = timedelta(minutes=5)
_TOKEN = re.compile(r"(ken1_[0-9a-f]{16}_[A-Za-z0-9_-]{43})_([0-9a-f]{8})")
_OK, _UNAUTHORIZED = 200, 401


class BadError(Exception):
    """This part is not as it should be; the message says what to do."""


class Asked:
    """What the server has answered to a look at its health."""

    def __init__(self, url: str, ca: Path | None) -> None:
        """Ask; raises BadError in plain words, AddressError for an address that is none."""
        self._url = url
        self._server = read_address(url)
        self._ca = ca
        self._asked_at = datetime.now(UTC)
        self._reply = self._request("GET", HEALTH)
        if self._reply.status != _OK:
            raise BadError(
                f"{url} answers {self._reply.status} for {HEALTH}: is that Kanade's address?"
            )

    def reach(self) -> str:
        """Say that it is there."""
        return f"{self._url} answers"

    def clock(self) -> str:
        """Say how far the PC's clock is from the server's; BadError where that is far."""
        if self._reply.date is None:
            return "the server does not tell its time here"
        skew = self._asked_at - self._reply.date
        if abs(skew) <= MOST_SKEW:
            return "agrees with the server's"
        words = format_duration(timedelta(seconds=abs(skew) // timedelta(seconds=1)))
        side = "ahead of" if skew > timedelta() else "behind"
        raise BadError(
            f"this PC's clock is {words} {side} the server's: set it. Commands still run at the "
            "right time, but scripts and certificates go by this clock"
        )

    def credential(self, identity: Identity) -> str:
        """Say that the server knows this PC; BadError where it does not (any more)."""
        reply = self._request("POST", exchange.PATH, body=b"{}", credential=identity.credential)
        if reply.status == _UNAUTHORIZED:
            raise BadError(
                "the server does not know this PC (any more): it was revoked, or this is another "
                "server. Enrol it anew, with a new token and an empty folder"
            )
        return "the server knows it"

    def _request(self, method: str, path: str, **rest: object) -> Reply:
        transport = Transport(self._server, ca=self._ca)
        try:
            return transport.request(method, path, timeout_s=TIMEOUT_S, **rest)  # type: ignore[arg-type]  # body, credential
        except UnreachableError as error:
            raise BadError(plain_words(error, self._server)) from error
        finally:
            transport.close()


def token_words(token: str) -> str:
    """Say that a token looks whole; BadError for one that was cut or mistyped."""
    found = _TOKEN.fullmatch(token)
    if found is None or f"{zlib.crc32(found[1].encode()):08x}" != found[2]:
        raise BadError(
            "the token is not whole: copy it again, from ken1_ to the end. It is for one use or "
            "for a time; whether it still opens anything, only the enrolment tells"
        )
    return f"looks whole; {enrolment.PATH} will tell whether it is still good"


def plain_words(error: UnreachableError, server: Server) -> str:
    """What is wrong with the way to the server, and what to do about it."""
    at = f"{server.host}:{server.port}"
    match error.__cause__:
        case socket.gaierror():
            return f"the name {server.host} is not known here: is it right, does this PC have DNS?"
        case ConnectionRefusedError():
            return f"{at} refuses connections: does the server run, is the port right?"
        case ssl.SSLCertVerificationError() as cause:
            return (
                f"the certificate of {at} is not trusted ({cause.verify_message}): give its "
                "authority with --ca FILE, and look whether this PC's clock is right"
            )
        case ssl.SSLError():
            return f"{at} does not speak TLS as it should: is the port right, is a proxy between?"
        case TimeoutError():
            return f"{at} does not answer within {TIMEOUT_S:.0f} s: is a firewall in between?"
    return f"{at} cannot be reached: {error}"
