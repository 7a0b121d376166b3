"""The server's own key: made when first needed, sealed at rest, and signing what agents are told.

The private key is kept under a key that follows from the pepper, which is not in the database: a
copy of the database alone signs nothing.
"""

import base64
import hashlib
import json
from dataclasses import dataclass, field
from functools import lru_cache
from uuid import UUID

from cryptography.exceptions import InvalidSignature
from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from fleet.agent.envelope import pre_authentication_encoding
from fleet.models import ServerIdentity

_ROW = 1


class SigningKeyError(Exception):
    """The server's key cannot be opened; nothing can be handed out. The message says what to do."""


@dataclass(frozen=True, slots=True)
class Signer:
    """Who the server is to its agents, and what it needs to prove it."""

    server_id: UUID
    epoch: int
    public_key: bytes
    _private_key: Ed25519PrivateKey = field(repr=False)

    @property
    def key_id(self) -> str:
        """A name for the public key: the beginning of its hash."""
        return hashlib.sha256(self.public_key).hexdigest()[:16]

    def envelope(self, payload_type: str, payload: dict[str, object]) -> dict[str, object]:
        """Return the payload as a signed DSSE envelope (JSON-like)."""
        body = json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()
        signature = self._private_key.sign(pre_authentication_encoding(payload_type, body))
        return {
            "payloadType": payload_type,
            "payload": base64.b64encode(body).decode(),
            "signatures": [
                {"keyid": self.key_id, "sig": base64.b64encode(signature).decode()},
            ],
        }


def server_signer() -> Signer:
    """Return the server's signer: one query once there is a key. Raises SigningKeyError."""
    row = ServerIdentity.objects.filter(pk=_ROW).first() or _make_identity()
    public = bytes(row.public_key)
    private = _opened(bytes(row.sealed_key), str(settings.KANADE_TOKEN_PEPPER))
    if private.public_key().public_bytes_raw() != public:
        raise SigningKeyError("the server's two keys do not belong together; restore the database")
    return Signer(row.server_id, row.epoch, public, private)


def _make_identity() -> ServerIdentity:
    private = Ed25519PrivateKey.generate()
    sealed = _box(str(settings.KANADE_TOKEN_PEPPER)).encrypt(private.private_bytes_raw())
    public = private.public_key().public_bytes_raw()
    # Of two processes that start together one wins; both read what is stored.
    row = ServerIdentity(pk=_ROW, public_key=public, sealed_key=sealed)
    ServerIdentity.objects.bulk_create([row], ignore_conflicts=True)
    return ServerIdentity.objects.get(pk=_ROW)


@lru_cache(maxsize=4)
def _opened(sealed: bytes, pepper: str) -> Ed25519PrivateKey:
    try:
        return Ed25519PrivateKey.from_private_bytes(_box(pepper).decrypt(sealed))
    except (InvalidToken, InvalidSignature, ValueError) as error:
        raise SigningKeyError(
            "the server's key does not open: KANADE_TOKEN_PEPPER is not the one it was sealed with"
        ) from error


def _box(pepper: str) -> Fernet:
    derived = HKDF(SHA256(), 32, salt=None, info=b"kanade server key").derive(pepper.encode())
    return Fernet(base64.urlsafe_b64encode(derived))
