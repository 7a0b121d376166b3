"""DSSE: the encoding, the shapes that are refused, and that each signed part is bound."""

from base64 import b64encode

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from fleet.agent.envelope import (
    COMMAND_TYPE,
    SCHEDULES_TYPE,
    EnvelopeError,
    open_envelope,
    pre_authentication_encoding,
    read_envelope,
)

PRIVATE = Ed25519PrivateKey.from_private_bytes(b"s" * 32)
KEY = PRIVATE.public_key().public_bytes_raw()
OTHER = Ed25519PrivateKey.from_private_bytes(b"o" * 32)


def sealed(
    payload: bytes = b'{"v":1}',
    *,
    kind: str = COMMAND_TYPE,
    by: Ed25519PrivateKey = PRIVATE,
) -> dict[str, object]:
    signature = by.sign(pre_authentication_encoding(kind, payload))
    return {
        "payloadType": kind,
        "payload": b64encode(payload).decode(),
        "signatures": [{"keyid": "k1", "sig": b64encode(signature).decode()}],
    }


def opened(value: object) -> bytes:
    return open_envelope(read_envelope(value), expected_type=COMMAND_TYPE, key=KEY)


def test_the_encoding_is_the_specifications_own_example() -> None:
    encoded = pre_authentication_encoding("http://example.com/HelloWorld", b"hello world")
    assert encoded == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"


def test_lengths_count_bytes_not_characters() -> None:
    assert pre_authentication_encoding("é", "ü".encode()) == "DSSEv1 2 é 2 ü".encode()


def test_the_payload_of_a_valid_envelope_comes_back_byte_for_byte() -> None:
    payload = b'{ "script" : "a\\nb" }\n'
    assert opened(sealed(payload)) == payload


def test_one_valid_signature_among_several_is_enough() -> None:
    value = sealed()
    foreign = sealed(by=OTHER)["signatures"]
    assert isinstance(foreign, list)
    assert isinstance(value["signatures"], list)
    value["signatures"] = foreign + value["signatures"]
    assert opened(value) == b'{"v":1}'


def test_another_key_is_refused() -> None:
    with pytest.raises(EnvelopeError, match="pinned key"):
        opened(sealed(by=OTHER))


def test_a_changed_payload_is_refused() -> None:
    value = sealed()
    value["payload"] = b64encode(b'{"v":2}').decode()
    with pytest.raises(EnvelopeError, match="pinned key"):
        opened(value)


def test_a_payload_signed_as_another_type_is_refused() -> None:
    with pytest.raises(EnvelopeError, match="type is not"):
        opened(sealed(kind=SCHEDULES_TYPE))


def test_a_relabelled_type_breaks_the_signature() -> None:
    value = sealed(kind=SCHEDULES_TYPE)
    value["payloadType"] = COMMAND_TYPE
    with pytest.raises(EnvelopeError, match="pinned key"):
        opened(value)


MALFORMED: dict[str, object] = {
    "no object": [],
    "null": None,
    "no type": {"payload": "", "signatures": [{"keyid": "", "sig": ""}]},
    "type not text": sealed() | {"payloadType": 7},
    "no payload": {"payloadType": COMMAND_TYPE, "signatures": [{"keyid": "", "sig": ""}]},
    "payload not text": sealed() | {"payload": 1},
    "payload not base64": sealed() | {"payload": "#### "},
    "payload url-safe base64": sealed() | {"payload": "_-_-"},
    "payload not ASCII": sealed() | {"payload": "éééé"},
    "no signatures": sealed() | {"signatures": []},
    "signatures no list": sealed() | {"signatures": "x"},
    "too many signatures": sealed() | {"signatures": [{"keyid": "", "sig": "AA=="}] * 5},
    "signature no object": sealed() | {"signatures": ["x"]},
    "signature without sig": sealed() | {"signatures": [{"keyid": "k"}]},
    "keyid not text": sealed() | {"signatures": [{"keyid": 1, "sig": "AA=="}]},
    "sig too long": sealed() | {"signatures": [{"keyid": "", "sig": "A" * 92}]},
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_envelope_is_refused(name: str) -> None:
    with pytest.raises(EnvelopeError):
        read_envelope(MALFORMED[name])


def test_a_payload_over_the_limit_is_refused_before_it_is_decoded() -> None:
    with pytest.raises(EnvelopeError, match="longer than 8 bytes"):
        read_envelope(sealed(b"123456789"), max_payload=8)
    assert read_envelope(sealed(b"12345678"), max_payload=8).payload == b"12345678"
