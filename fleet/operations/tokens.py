"""Bearer tokens: how they look, and what of them is kept.

A token reads `<purpose>_<public id>_<43 characters>_<crc32>`: the public id finds its row, the 43
characters are 256 random bits, and the checksum lets scanners recognise a leaked token and a typing
error fail early. What is kept is an HMAC under the pepper, which is not in the database.
"""

import hashlib
import hmac
import re
import secrets
import zlib
from dataclasses import dataclass, field
from enum import StrEnum

from django.conf import settings

_TEXT = re.compile(r"(ken1|kag1|kap1)_([0-9a-f-]{16,36})_([A-Za-z0-9_-]{43})_([0-9a-f]{8})")
LONGEST = 128


class Purpose(StrEnum):
    """What a token opens; a token of one purpose opens nothing of another."""

    ENROLMENT = "ken1"
    AGENT = "kag1"
    API = "kap1"


@dataclass(frozen=True, slots=True)
class Token:
    """A token in the clear. Show it once, keep `kept_hash(token)`."""

    purpose: Purpose
    public_id: str
    secret: str = field(repr=False)

    @property
    def text(self) -> str:
        """The whole token, as its holder sends it."""
        body = f"{self.purpose.value}_{self.public_id}_{self.secret}"
        return f"{body}_{_checksum(body)}"


def new_token(purpose: Purpose, public_id: str | None = None) -> Token:
    """Return a fresh token; an agent's public id is its uuid, others get a random one."""
    return Token(purpose, public_id or secrets.token_hex(8), secrets.token_urlsafe(32))


def parse_token(text: str, purpose: Purpose) -> Token | None:
    """Return the token that `text` spells, or None when it is none of this purpose."""
    found = _TEXT.fullmatch(text) if len(text) <= LONGEST else None
    if found is None or found[1] != purpose.value:
        return None
    body, _, checksum = text.rpartition("_")
    return Token(purpose, found[2], found[3]) if checksum == _checksum(body) else None


def kept_hash(token: Token) -> str:
    """Return the 64 hex digits that are kept of a token."""
    return peppered(f"token {token.purpose.value}", token.secret)


def matches(token: Token, kept: str) -> bool:
    """Answer whether `kept` is the hash of this token, in time that does not depend on it."""
    return hmac.compare_digest(kept_hash(token), kept)


def peppered(label: str, secret: str) -> str:
    """Return the HMAC-SHA-256 of a secret under the pepper; `label` keeps the uses apart."""
    pepper = str(settings.KANADE_TOKEN_PEPPER).encode()
    return hmac.new(pepper, f"{label}:{secret}".encode(), hashlib.sha256).hexdigest()


def ticket_key() -> bytes:
    """Return the key of wait tickets."""
    return peppered("key", "wait tickets").encode()


def _checksum(body: str) -> str:
    return f"{zlib.crc32(body.encode()):08x}"
