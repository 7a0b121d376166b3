"""Reports as agents send them, read by the server's own reader."""

from base64 import b64encode
from typing import Any
from uuid import UUID

from fleet.models import Command
from fleet.rules.report_items import Chunk, Result, Start, read_chunk, read_result, read_start
from tests.fleet.make import NOW


def result_item(command: Command | UUID, **fields: Any) -> dict[str, Any]:
    """The JSON of a result: a success with a line of output."""
    pk = command.pk if isinstance(command, Command) else command
    return {
        "command": str(pk),
        "attempt": 1,
        "outcome": "succeeded",
        "exit_code": 0,
        "reason": "",
        "started_at": NOW.isoformat(),
        "finished_at": NOW.isoformat(),
        "duration_ms": 1200,
        "retries": 0,
        "note": "",
        "output": {"stdout": stream(b"hello\n"), "stderr": stream(b""), "code_page": "utf-8"},
    } | fields


def stream(head: bytes, tail: bytes = b"", **fields: Any) -> dict[str, Any]:
    """The JSON of a captured stream."""
    return {
        "head": b64encode(head).decode(),
        "tail": b64encode(tail).decode(),
        "total": len(head) + len(tail),
        "sha256": "",
    } | fields


def result(command: Command | UUID, **fields: Any) -> Result:
    """A result, read."""
    pk = command.pk if isinstance(command, Command) else command
    return read_result(pk, result_item(command, **fields))


def start(command: Command, attempt: int = 1, **fields: Any) -> Start:
    """A start, read."""
    item = {"attempt": attempt, "started_at": NOW.isoformat()} | fields
    return read_start(command.pk, item)


def chunk(command: Command, offset: int, data: bytes, name: str = "stdout") -> Chunk:
    """A piece of output, read."""
    item = {"stream": name, "offset": offset, "bytes": b64encode(data).decode()}
    return read_chunk(command.pk, item)
