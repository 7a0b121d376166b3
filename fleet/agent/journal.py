"""What the agent has done with each command, written down before it is done.

The journal is the reason why a script starts at most once per (command, attempt): a start is on
the disk before the script runs, and what is on the disk is never started again. After a crash in
between nobody knows whether the script ran, and that is what is reported.
"""

import os
import threading
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from fleet.agent import fields, journal_records, state
from fleet.agent.commands import Command
from fleet.agent.journal_records import Ending, Entry, Record

# Past its deadline a command is refused anyway; kept well beyond, in case time went backwards.
KEPT_AFTER_DEADLINE = timedelta(days=30)
_MAX_BYTES = 512 * 1024 * 1024


class AlreadyStartedError(Exception):
    """This attempt of the command is in the journal: it must not start again."""


class Journal:
    """The append-only file and what it says, for all threads of the agent.

    Every writing method raises OSError when the disk refuses; then nothing is noted.
    """

    def __init__(self, path: Path, *, expected: bool) -> None:
        """Open the file; `expected` says that there must be one, else its absence is damage.

        Raises StateError when the file is open to others.
        """
        self._path = path
        self._lock = threading.RLock()
        self._entries: dict[str, Entry] = {}
        self._floor = (0, 0)
        self._suspect_until: datetime | None = None
        data = state.read_private(path, most=_MAX_BYTES)
        lines = journal_records.decode_all(data or b"")
        self._damaged = lines.damaged or (expected and data is None)
        for record in lines.records:
            if not self._take(record):
                self._damaged = True
        self._end = lines.whole_bytes
        self._file = self._open()

    def entry(self, command: str) -> Entry | None:
        """What is known of a command."""
        with self._lock:
            return self._entries.get(command)

    def interrupted(self) -> tuple[Entry, ...]:
        """The commands that were started and have no end, oldest first."""
        with self._lock:
            return tuple(entry for entry in self._entries.values() if entry.is_interrupted)

    def may_have_forgotten(self, command: Command) -> bool:
        """Whether an unknown command could have been started once, for all the journal knows."""
        with self._lock:
            if self._damaged:
                return True
            if self._suspect_until is not None and command.issued_at <= self._suspect_until:
                return True
            return (command.server_epoch, command.seq) <= self._floor

    def received(self, command: Command) -> None:
        """Note a command; after a crash it may still be handed over again."""
        self._append(journal_records.received(journal_records.new_entry(command)), durable=False)

    def started(self, command: str, attempt: int) -> None:
        """Write down a start; only after this has returned may the script run.

        Raises AlreadyStartedError when this or a later attempt has been started.
        """
        with self._lock:
            entry = self._entries[command]
            if entry.finished is not None or attempt <= entry.attempt:
                raise AlreadyStartedError(f"attempt {attempt} of {command} was started before")
            self._append(journal_records.started(command, attempt), durable=True)

    def attempt_ended(self, command: str, ending: Ending) -> None:
        """Note how an attempt ended that another may follow."""
        self._end_of(command, ending, last=False)

    def finished(self, command: str, ending: Ending) -> None:
        """Note the end of a command whose result is in the outbox."""
        self._end_of(command, ending, last=True)

    def refused(self, command: str, ending: Ending, *, keep_until: datetime) -> None:
        """Note the end of a command that was never taken, of which only the id may be known."""
        with self._lock:
            if command not in self._entries:
                entry = Entry(command, epoch=0, seq=0, deadline_at=keep_until)
                self._append(journal_records.received(entry), durable=False)
            self.finished(command, ending)

    def settle(self, now: datetime) -> None:
        """After damage: what was issued up to `now` may have run and will not start again."""
        with self._lock:
            if self._damaged:
                self._append({"s": "suspect", "until": now.isoformat()}, durable=True)
                self._damaged = False

    def compact(self, now: datetime) -> None:
        """Rewrite the file without what is long past."""
        with self._lock:
            limit = now - KEPT_AFTER_DEADLINE
            past = [entry for entry in self._entries.values() if _is_past(entry, limit)]
            if self._damaged or not past:
                return
            floor = max(self._floor, *((entry.epoch, entry.seq) for entry in past))
            kept = {e.command: e for e in self._entries.values() if not _is_past(e, limit)}
            self._rewrite(floor, kept)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _end_of(self, command: str, ending: Ending, *, last: bool) -> None:
        with self._lock:
            if command not in self._entries:
                # Told now, and not by the next start of the agent as damage.
                raise KeyError(f"the journal does not know {command}")
            self._append(journal_records.ended(command, ending, last=last), durable=True)

    def _rewrite(self, floor: tuple[int, int], kept: dict[str, Entry]) -> None:
        records: list[Record] = [{"s": "floor", "epoch": floor[0], "seq": floor[1]}]
        if self._suspect_until is not None:
            records.append({"s": "suspect", "until": self._suspect_until.isoformat()})
        for entry in kept.values():
            records.extend(journal_records.records_of(entry))
        data = b"".join(map(journal_records.encode, records))
        # Closed first: Windows replaces no open file.
        self._file.close()
        try:
            state.write_private(self._path, data)
            self._floor, self._entries, self._end = floor, kept, len(data)
        finally:
            self._file = self._open()

    def _open(self) -> BinaryIO:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
        return os.fdopen(os.open(self._path, flags, 0o600), "r+b", buffering=0)

    def _append(self, record: Record, *, durable: bool) -> None:
        line = journal_records.encode(record)
        with self._lock:
            # What a crash or a full disk left of a half record goes first: nothing may be glued
            # to it, and where it cannot be removed nothing may be started.
            self._file.truncate(self._end)
            self._file.seek(self._end)
            if self._file.write(line) != len(line):
                raise OSError("the journal took only a part of a record: the disk is full")
            if durable:
                os.fsync(self._file.fileno())
            self._end += len(line)
            self._take(record)

    def _take(self, record: Mapping[str, object]) -> bool:
        """Apply a record; False when it makes no sense."""
        try:
            self._apply(record)
        except (fields.FieldError, KeyError):
            return False
        return True

    def _apply(self, record: Mapping[str, object]) -> None:
        match record.get("s"):
            case "floor":
                numbers = journal_records.number
                self._floor = (numbers(record, "epoch"), numbers(record, "seq"))
            case "suspect":
                self._suspect_until = fields.moment(record, "until")
            case "received":
                entry = journal_records.read_received(record)
                self._entries.setdefault(entry.command, entry)
            case _:
                command = fields.text(record, "c")
                self._entries[command] = journal_records.moved(self._entries[command], record)


def _is_past(entry: Entry, limit: datetime) -> bool:
    return entry.deadline_at < limit and not entry.is_interrupted
