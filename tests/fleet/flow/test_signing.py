"""The server's key and what it signs."""

import base64
import json
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.agent.envelope import COMMAND_TYPE, EnvelopeError, open_envelope, read_envelope
from fleet.flow.signing import SigningKeyError, server_signer
from fleet.models import ServerIdentity

pytestmark = pytest.mark.django_db


def test_the_key_is_made_once_and_kept() -> None:
    first, second = server_signer(), server_signer()

    assert (first.server_id, first.public_key) == (second.server_id, second.public_key)
    assert ServerIdentity.objects.count() == 1
    assert first.epoch == 1


def test_the_agent_opens_what_the_server_signed() -> None:
    signer = server_signer()

    envelope = signer.envelope(COMMAND_TYPE, {"job": "héllo"})

    payload = open_envelope(
        read_envelope(envelope), expected_type=COMMAND_TYPE, key=signer.public_key
    )
    assert json.loads(payload) == {"job": "héllo"}
    assert envelope["payloadType"] == COMMAND_TYPE


def test_one_changed_byte_breaks_the_signature() -> None:
    signer = server_signer()
    envelope: dict[str, Any] = signer.envelope(COMMAND_TYPE, {"script": "echo a"})
    body = base64.b64decode(envelope["payload"]).replace(b"echo a", b"echo b")

    envelope["payload"] = base64.b64encode(body).decode()

    with pytest.raises(EnvelopeError):
        open_envelope(read_envelope(envelope), expected_type=COMMAND_TYPE, key=signer.public_key)


def test_the_database_holds_no_key_in_the_clear() -> None:
    signer = server_signer()
    row = ServerIdentity.objects.get()

    assert signer._private_key.private_bytes_raw() not in bytes(row.sealed_key)
    assert "private" not in repr(signer)


def test_another_pepper_does_not_open_the_key(settings: Any) -> None:
    server_signer()

    settings.KANADE_TOKEN_PEPPER = "another pepper"

    with pytest.raises(SigningKeyError, match="KANADE_TOKEN_PEPPER"):
        server_signer()


def test_a_public_key_put_in_its_place_is_noticed() -> None:
    server_signer()
    ServerIdentity.objects.update(public_key=bytes(32))

    with pytest.raises(SigningKeyError, match="do not belong together"):
        server_signer()


def test_a_raised_epoch_is_seen_at_once() -> None:
    server_signer()
    ServerIdentity.objects.update(epoch=2)

    assert server_signer().epoch == 2


def test_reading_the_key_is_one_query() -> None:
    server_signer()

    with CaptureQueriesContext(connection) as captured:
        server_signer()

    assert len(captured) == 1
