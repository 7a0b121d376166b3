"""The items of an agent's report: starts, results with their output, and output while it runs."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from fleet.rules.command_states import ANSWERS, CommandState
from fleet.rules.report_fields import decoded, moment, read_whole, text
from scheduler.rules.strict_json import SAFE_INTEGER

MAX_OUTPUT = 1024 * 1024
MAX_ATTEMPT = 100
MAX_REASON, MAX_NOTE, MAX_NAME, MAX_SLUG = 500, 4_000, 40, 100
_EXIT_CODES = 2**32
STREAMS = ("stdout", "stderr")
# What an agent may say of a command; that it does not know is an answer too.
OUTCOMES = {state.value: state for state in (*ANSWERS, CommandState.OUTCOME_UNKNOWN)}
UNREADABLE = "the PC's report could not be read"


@dataclass(frozen=True, slots=True)
class LocalFire:
    """What the PC fired by itself: a schedule with `runs_on: agent`, and the job as it has it."""

    schedule: str
    job: str
    version: str
    execute_sha256: str
    nominal_at: datetime | None


@dataclass(frozen=True, slots=True)
class Start:
    """An attempt has begun; the time is of the PC's clock."""

    command: UUID
    attempt: int
    started_at: datetime | None
    local: LocalFire | None = None


@dataclass(frozen=True, slots=True)
class Captured:
    """A stream's head and tail, how long it was in all, and its hash."""

    head: bytes = b""
    tail: bytes = b""
    total: int = 0
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """How a command ended at the PC. `digest` is of the whole item, as it came."""

    command: UUID
    attempt: int
    outcome: CommandState
    exit_code: int | None
    reason: str
    started_at: datetime | None
    finished_at: datetime | None
    duration_ms: int | None
    retries: int
    note: str
    stdout: Captured
    stderr: Captured
    code_page: str
    digest: str
    local: LocalFire | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of output of a running script, with its place in the stream."""

    command: UUID
    stream: str
    offset: int
    data: bytes


def read_start(command: UUID, item: Mapping[str, object]) -> Start:
    """Return a start; an odd attempt counts as the first."""
    return Start(command, _attempt(item), moment(item.get("started_at")), _local_fire(item))


def read_result(command: UUID, item: Mapping[str, object]) -> Result:
    """Return a result; without an outcome that is known, nobody knows how the command ended."""
    outcome = OUTCOMES.get(str(item.get("outcome")))
    output = item.get("output")
    streams = output if isinstance(output, Mapping) else {}
    stdout = _captured(streams.get("stdout"), MAX_OUTPUT)
    room = MAX_OUTPUT - len(stdout.head) - len(stdout.tail)
    return Result(
        command=command,
        attempt=_attempt(item),
        outcome=outcome or CommandState.OUTCOME_UNKNOWN,
        exit_code=read_whole(item.get("exit_code"), least=-_EXIT_CODES, most=_EXIT_CODES),
        reason=text(item.get("reason"), most=MAX_REASON) if outcome else UNREADABLE,
        started_at=moment(item.get("started_at")),
        finished_at=moment(item.get("finished_at")),
        duration_ms=read_whole(item.get("duration_ms"), least=0, most=SAFE_INTEGER),
        retries=read_whole(item.get("retries"), least=0, most=MAX_ATTEMPT) or 0,
        note=text(item.get("note"), most=MAX_NOTE),
        stdout=stdout,
        stderr=_captured(streams.get("stderr"), room),
        code_page=text(streams.get("code_page"), most=MAX_NAME),
        digest=_digest(item),
        local=_local_fire(item),
    )


def read_chunk(command: UUID, item: Mapping[str, object]) -> Chunk:
    """Return a piece of output; one without a place or a stream is empty."""
    stream = item.get("stream")
    offset = read_whole(item.get("offset"), least=0, most=SAFE_INTEGER)
    placed = stream in STREAMS and offset is not None
    data = decoded(item.get("bytes")) if placed else b""
    return Chunk(command, str(stream) if placed else STREAMS[0], offset or 0, data[:MAX_OUTPUT])


def _local_fire(item: Mapping[str, object]) -> LocalFire | None:
    told = item.get("local")
    if not isinstance(told, Mapping):
        return None
    return LocalFire(
        schedule=text(told.get("schedule"), most=MAX_SLUG),
        job=text(told.get("job"), most=MAX_SLUG),
        version=text(told.get("version"), most=MAX_SLUG),
        execute_sha256=text(told.get("execute_sha256"), most=64),
        nominal_at=moment(told.get("nominal_at")),
    )


def _attempt(item: Mapping[str, object]) -> int:
    return read_whole(item.get("attempt"), least=1, most=MAX_ATTEMPT) or 1


def _captured(value: object, room: int) -> Captured:
    """Return what was kept of a stream, cut to `room` bytes."""
    if not isinstance(value, Mapping):
        return Captured()
    head = decoded(value.get("head"))[:room]
    tail = decoded(value.get("tail"))
    tail = tail[max(0, len(tail) - (room - len(head))) :]
    total = read_whole(value.get("total"), least=0, most=SAFE_INTEGER) or 0
    sha256 = text(value.get("sha256"), most=64)
    return Captured(head, tail, max(total, len(head) + len(tail)), sha256)


def _digest(item: Mapping[str, object]) -> str:
    # ASCII, so that half surrogate pairs are no obstacle.
    canonical = json.dumps(item, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()
