"""Builders of the agent's tests, with quiet defaults."""

import hashlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from fleet.agent.commands import Command, Script

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
AGENT_ID = "0190d0a0-0000-7000-8000-00000000000a"
SERVER_ID = "0190d0a0-0000-7000-8000-0000000000ff"


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
