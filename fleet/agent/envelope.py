"""DSSE envelopes: the signature covers the bytes as sent and the type they claim to have.

Nothing of a payload is parsed before its signature holds.
"""

import binascii
from base64 import b64decode
from dataclasses import dataclass

from fleet.agent.ed25519 import verify

COMMAND_TYPE = "application/vnd.kanade.command.v1+json"
SCHEDULES_TYPE = "application/vnd.kanade.schedules.v1+json"
MAX_PAYLOAD_BYTES = 512 * 1024
MAX_SIGNATURES = 4


class EnvelopeError(ValueError):
    """The envelope is malformed or not signed by the pinned key; the message says which."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """What an envelope carries, before anybody has verified it."""

    payload_type: str
    payload: bytes
    signatures: tuple[bytes, ...]


def pre_authentication_encoding(payload_type: str, payload: bytes) -> bytes:
    """The bytes that are signed: lengths first, so that no two messages encode alike."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def read_envelope(value: object, *, max_payload: int = MAX_PAYLOAD_BYTES) -> Envelope:
    """Return the envelope of a JSON object; EnvelopeError when its shape is wrong."""
    if not isinstance(value, dict):
        raise EnvelopeError("an envelope is a JSON object")
    payload_type, signatures = value.get("payloadType"), value.get("signatures")
    if not isinstance(payload_type, str):
        raise EnvelopeError("payloadType is missing")
    if not isinstance(signatures, list) or not 1 <= len(signatures) <= MAX_SIGNATURES:
        raise EnvelopeError(f"signatures: from 1 to {MAX_SIGNATURES} are needed")
    payload = _decoded(value.get("payload"), "payload", most=max_payload)
    return Envelope(payload_type, payload, tuple(_signature(entry) for entry in signatures))


def open_envelope(envelope: Envelope, *, expected_type: str, key: bytes) -> bytes:
    """Return the payload once one signature by `key` (32 bytes) holds; else EnvelopeError.

    The key id of a signature is a hint by its definition, so it decides nothing here: one key is
    pinned, and only what that key signed is opened.
    """
    if envelope.payload_type != expected_type:
        raise EnvelopeError(f"the payload's type is not {expected_type}")
    message = pre_authentication_encoding(envelope.payload_type, envelope.payload)
    if not any(verify(key, signature, message) for signature in envelope.signatures):
        raise EnvelopeError("the signature is not by the server's pinned key")
    return envelope.payload


def _signature(entry: object) -> bytes:
    if not isinstance(entry, dict) or not isinstance(entry.get("keyid", ""), str):
        raise EnvelopeError("a signature is an object with keyid and sig")
    return _decoded(entry.get("sig"), "sig", most=64)


def _decoded(text: object, name: str, *, most: int) -> bytes:
    # Measured before it is decoded: four characters carry three bytes, less the padding.
    if not isinstance(text, str) or len(text.rstrip("=")) > (most * 4 + 2) // 3:
        raise EnvelopeError(f"{name} is missing or longer than {most} bytes")
    try:
        return b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise EnvelopeError(f"{name} is not base64") from error
