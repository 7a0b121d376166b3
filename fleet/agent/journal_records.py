"""What the journal knows of one command, and how that is written: a checksummed JSON line each."""

import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from fleet.agent import fields
from fleet.agent.commands import Command, Outcome
from scheduler.rules import strict_json

Record = dict[str, object]
_EXIT_CODES = 2**32


@dataclass(frozen=True, slots=True)
class Ending:
    """How an attempt, or the whole command, ended."""

    outcome: Outcome
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One command: its place in the server's order, its starts and its end."""

    command: str
    epoch: int
    seq: int
    deadline_at: datetime
    attempt: int = 0
    attempt_ended: Ending | None = None
    finished: Ending | None = None
    local: dict[str, object] | None = None

    @property
    def is_interrupted(self) -> bool:
        """Whether it was started and never came to its end."""
        return self.attempt > 0 and self.finished is None


@dataclass(frozen=True, slots=True)
class Lines:
    """What a file holds: its records, how many bytes of it are whole, whether it was harmed."""

    records: tuple[Record, ...]
    whole_bytes: int
    damaged: bool


def encode(record: Record) -> bytes:
    """One line."""
    text = json.dumps(record, separators=(",", ":")).encode()
    return b"%08x %b\n" % (zlib.crc32(text), text)


def decode_all(data: bytes) -> Lines:
    """Read a whole file.

    A last line without its end was being written when the agent died: its fsync never returned,
    so nothing was started on its account, and it is dropped. Any other line that does not match
    its checksum was whole once: the file is damaged.
    """
    whole = data.rfind(b"\n") + 1
    decoded = [_decode(line) for line in data[:whole].split(b"\n")[:-1]]
    records = tuple(record for record in decoded if record is not None)
    return Lines(records, whole, damaged=len(records) != len(decoded))


def _decode(line: bytes) -> Record | None:
    checksum, _, text = line.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(text):
        return None
    try:
        value = strict_json.loads(text)
    except strict_json.StrictJSONError:
        return None
    return value if isinstance(value, dict) else None


def new_entry(command: Command) -> Entry:
    """What is known of a command that has just come."""
    return Entry(
        command.id,
        command.server_epoch,
        command.seq,
        command.deadline_at,
        local=command.local,
    )


def received(entry: Entry) -> Record:
    """The record of a command's arrival."""
    record: Record = {
        "s": "received",
        "c": entry.command,
        "epoch": entry.epoch,
        "seq": entry.seq,
        "deadline": entry.deadline_at.isoformat(),
    }
    return record if entry.local is None else record | {"local": entry.local}


def started(command: str, attempt: int) -> Record:
    """The record of a start."""
    return {"s": "started", "c": command, "n": attempt}


def ended(command: str, ending: Ending, *, last: bool) -> Record:
    """The record of an attempt's end; the last one finishes the command."""
    return {
        "s": "finished" if last else "ended",
        "c": command,
        "outcome": str(ending.outcome),
        "exit": ending.exit_code,
    }


def records_of(entry: Entry) -> Iterator[Record]:
    """The fewest records that say what the entry says."""
    yield received(entry)
    if entry.attempt:
        yield started(entry.command, entry.attempt)
    if entry.attempt_ended is not None:
        yield ended(entry.command, entry.attempt_ended, last=False)
    if entry.finished is not None:
        yield ended(entry.command, entry.finished, last=True)


def read_received(record: Mapping[str, object]) -> Entry:
    """The entry that an arrival makes; FieldError when the record makes no sense."""
    return Entry(
        command=fields.text(record, "c"),
        epoch=number(record, "epoch"),
        seq=number(record, "seq"),
        deadline_at=fields.moment(record, "deadline"),
        local=None if record.get("local") is None else fields.child(record, "local"),
    )


def moved(entry: Entry, record: Mapping[str, object]) -> Entry:
    """The entry after a start or an end; FieldError when the record makes no sense."""
    match record.get("s"):
        case "started":
            return replace(entry, attempt=number(record, "n"), attempt_ended=None)
        case "ended":
            return replace(entry, attempt_ended=_read_ending(record))
        case "finished":
            return replace(entry, finished=_read_ending(record))
        case kind:
            raise fields.FieldError(f"s: {kind!r} is no kind of record")


def number(record: Mapping[str, object], key: str) -> int:
    """A count of the journal."""
    return fields.whole(record, key, least=0, most=strict_json.SAFE_INTEGER)


def _read_ending(record: Mapping[str, object]) -> Ending:
    try:
        outcome = Outcome(fields.text(record, "outcome"))
    except ValueError as error:
        raise fields.FieldError("outcome: not one of the known words") from error
    if record.get("exit") is None:
        return Ending(outcome)
    return Ending(outcome, fields.whole(record, "exit", least=-_EXIT_CODES, most=_EXIT_CODES))
