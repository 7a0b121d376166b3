"""Builders of the agent's tests, with quiet defaults."""

import hashlib
import json
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from fleet.agent.checks import Pinned
from fleet.agent.commands import Command, Script
from fleet.agent.envelope import COMMAND_TYPE, pre_authentication_encoding

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
AGENT_ID = "0190d0a0-0000-7000-8000-00000000000a"
SERVER_ID = "0190d0a0-0000-7000-8000-0000000000ff"
SIGNER = Ed25519PrivateKey.from_private_bytes(b"s" * 32)
PUBLIC_KEY = SIGNER.public_key().public_bytes_raw()
PINNED = Pinned(AGENT_ID, SERVER_ID, server_epoch=1, key=PUBLIC_KEY)


def command_id(number: int = 1) -> str:
    """The uuid of the n-th command."""
    return f"0190d0a0-0000-7000-8000-{number:012x}"


def make_script(text: str = "true\n", **fields: Any) -> Script:
    """A script of `sh`."""
    script = Script(shell="sh", text=text, sha256=hashlib.sha256(text.encode()).hexdigest())
    return replace(script, **fields)


def make_command(number: int = 1, script: Script | None = None, **fields: Any) -> Command:
    """A command issued at NOW with an hour to start."""
    command = Command(
        id=command_id(number),
        agent_id=AGENT_ID,
        server_id=SERVER_ID,
        server_epoch=1,
        seq=number,
        job="inventory",
        version="1.0.0",
        script=script or make_script(),
        issued_at=NOW,
        deadline_at=NOW + timedelta(hours=1),
    )
    return replace(command, **fields)


def payload_of(command: Command) -> dict[str, object]:
    """The JSON object that the server signs."""
    script, retry = command.script, command.retry
    return {
        "v": 1,
        "server_id": command.server_id,
        "server_epoch": command.server_epoch,
        "cmd_id": command.id,
        "execution_id": None,
        "agent_id": command.agent_id,
        "seq": command.seq,
        "job": command.job,
        "version": command.version,
        "shell": script.shell,
        "script": script.text,
        "script_sha256": script.sha256,
        "timeout_s": script.timeout_s,
        "run_as": script.run_as,
        "cwd": script.cwd,
        "params": dict(script.params),
        "max_output": script.max_output,
        "issued_at": command.issued_at.isoformat(),
        "start_after": command.start_after.isoformat() if command.start_after else None,
        "deadline_at": command.deadline_at.isoformat(),
        "retry": {"max": retry.times, "backoff_s": retry.backoff_s} if retry.times else None,
        "override_freeze": command.override_freeze,
    }


def sealed(
    payload: object, *, kind: str = COMMAND_TYPE, by: Ed25519PrivateKey = SIGNER
) -> dict[str, object]:
    """The envelope of a payload: JSON for an object, the bytes as they are else."""
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    signature = by.sign(pre_authentication_encoding(kind, data))
    return {
        "payloadType": kind,
        "payload": b64encode(data).decode(),
        "signatures": [{"keyid": "test", "sig": b64encode(signature).decode()}],
    }
