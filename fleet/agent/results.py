"""How a command ended, as it is stored in the outbox and sent."""

from base64 import b64encode
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from fleet.agent.commands import Outcome
from fleet.agent.output import Captured, Stream
from scheduler.rules.texts import clean_text

MAX_REASON = 500


@dataclass(frozen=True, slots=True)
class Result:
    """One command's end. Times are the server's (aware, UTC); the duration is of the PC's clock."""

    command: str
    outcome: Outcome
    finished_at: datetime | None
    attempt: int = 1
    exit_code: int | None = None
    reason: str = ""
    started_at: datetime | None = None
    duration: timedelta = timedelta()
    retries: int = 0
    note: str = ""
    output: dict[Stream, Captured] = field(default_factory=dict)
    code_page: str = ""
    local: dict[str, object] | None = None


def to_document(result: Result) -> dict[str, object]:
    """The JSON object of the exchange."""
    document: dict[str, object] = {
        "command": result.command,
        "attempt": result.attempt,
        "outcome": str(result.outcome),
        "exit_code": result.exit_code,
        "reason": clean_text(result.reason, most=MAX_REASON),
        "started_at": _written(result.started_at),
        "finished_at": _written(result.finished_at),
        "duration_ms": max(0, round(result.duration / timedelta(milliseconds=1))),
        "retries": result.retries,
        "note": result.note,
        "output": {
            str(stream): _captured(result.output.get(stream, Captured())) for stream in Stream
        }
        | {"code_page": result.code_page},
    }
    return document if result.local is None else document | {"local": result.local}


def _captured(part: Captured) -> dict[str, object]:
    return {
        "head": b64encode(part.head).decode(),
        "tail": b64encode(part.tail).decode(),
        "total": part.total,
        "sha256": part.sha256,
    }


def _written(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
