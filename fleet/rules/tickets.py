"""Wait tickets: whoever holds one may wait for a call to one agent, for a few minutes.

Stateless, so that the waiting path asks no database: `<agent>.<milliseconds>.<mac>`. A ticket opens
nothing but the wait, which carries no data.
"""

import hashlib
import hmac
import re
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

GOOD_FOR = timedelta(minutes=5)
# Two servers' clocks may differ a little.
FROM_THE_FUTURE = timedelta(minutes=1)
_TEXT = re.compile(r"([0-9]{1,19})\.([0-9]{13,14})\.([A-Za-z0-9_-]{43})")
LONGEST = 80


@dataclass(frozen=True, slots=True)
class Ticket:
    """Who may wait, and since when it is not known what became of that agent's work."""

    agent_id: int
    issued_at: datetime


def write_ticket(ticket: Ticket, *, key: bytes) -> str:
    """Return the text of a ticket; times are kept to the millisecond, cut."""
    milliseconds = (ticket.issued_at - _EPOCH) // timedelta(milliseconds=1)
    body = f"{ticket.agent_id}.{milliseconds}"
    return f"{body}.{_mac(body, key)}"


def read_ticket(text: str, *, key: bytes, now: datetime) -> Ticket | None:
    """Return the ticket that `text` spells, or None: not ours, too old, or from the future."""
    found = _TEXT.fullmatch(text) if len(text) <= LONGEST else None
    if found is None:
        return None
    if not hmac.compare_digest(_mac(f"{found[1]}.{found[2]}", key), found[3]):
        return None
    issued_at = _EPOCH + timedelta(milliseconds=int(found[2]))
    if not issued_at - FROM_THE_FUTURE <= now < issued_at + GOOD_FOR:
        return None
    return Ticket(int(found[1]), issued_at)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _mac(body: str, key: bytes) -> str:
    digest = hmac.new(key, b"wait ticket:" + body.encode(), hashlib.sha256).digest()
    return urlsafe_b64encode(digest).rstrip(b"=").decode()
