"""Results on their way to the server: one file each, kept until the server has answered for it.

A result outlives crashes, restarts and weeks without a network. No file may hold up the others:
what cannot be read is put aside, and what the server does not answer for waits longer each time.
"""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fleet.agent import fields, state
from fleet.agent.clock import steady_seconds
from fleet.agent.commands import read_id
from scheduler.rules import strict_json

# A result with a megabyte of output is 1.4 MB as JSON; the exchange carries 4 MiB.
MAX_RESULT_BYTES = 3 * 1024 * 1024
_FIRST_DELAY_S, _LONGEST_DELAY_S = 1.0, 256.0
_SETTLED = frozenset({"stored", "duplicate", "unknown"})


@dataclass(slots=True)
class _Waiting:
    """A result and when it may be sent again; its bytes are held only while the disk refuses."""

    command: str
    size: int
    path: Path
    unsaved: bytes | None = None
    failures: int = 0
    not_before: float = 0.0


class Outbox:
    """The results that wait, oldest first."""

    def __init__(self, folder: Path, *, steady: Callable[[], float] = steady_seconds) -> None:
        """Open the folder; `lost` names the commands whose results could not be read."""
        self._folder = state.open_folder(folder)
        self._aside = state.open_folder(folder / "aside")
        self._steady = steady
        self._lock = threading.Lock()
        self._waiting: dict[str, _Waiting] = {}
        self._number = 0
        self.lost: list[str] = []
        for path in sorted(self._folder.glob("*.json")):
            self._load(path)

    def __len__(self) -> int:
        with self._lock:
            return len(self._waiting)

    def __contains__(self, command: object) -> bool:
        with self._lock:
            return command in self._waiting

    def put(self, document: dict[str, object]) -> None:
        """Keep a result (its JSON object) until it is settled.

        On a full disk it is kept in memory and written later: it is sent all the same.
        """
        data = json.dumps(document).encode()
        command = fields.text(document, "command")
        with self._lock:
            self._number += 1
            path = self._folder / f"{self._number:012d}-{command}.json"
            waiting = _Waiting(command, len(data), path, unsaved=data)
            self._waiting[command] = waiting
            _try_to_save(waiting)

    def find(self, command: str) -> dict[str, object] | None:
        """The result of a command, None where there is none that can be read."""
        with self._lock:
            waiting = self._waiting.get(command)
            return None if waiting is None else self._document(waiting)

    def due(self, *, most_bytes: int) -> list[dict[str, object]]:
        """The results to send now, oldest first, at most `most_bytes` of JSON, but one at least."""
        chosen: list[dict[str, object]] = []
        left = most_bytes
        with self._lock:
            now = self._steady()
            for waiting in list(self._waiting.values()):
                _try_to_save(waiting)
                if waiting.not_before > now:
                    continue
                if chosen and waiting.size > left:
                    break
                document = self._document(waiting)
                if document is not None:
                    chosen.append(document)
                    left -= waiting.size
        return chosen

    def next_due_in(self) -> float | None:
        """Seconds until a result may be sent; None when none waits."""
        with self._lock:
            now = self._steady()
            return min((max(0.0, w.not_before - now) for w in self._waiting.values()), default=None)

    def settle(self, command: str, verdict: str) -> bool:
        """Act on the server's word for a result; whether it is done with.

        A conflict (the server holds another result of this command) is put aside for a person to
        see. A word that is not known counts as no answer.
        """
        with self._lock:
            waiting = self._waiting.get(command)
            if waiting is None:
                return True
            if verdict in _SETTLED:
                self._drop(waiting)
            elif verdict == "conflict":
                self._put_aside(waiting)
            else:
                self._postpone(waiting)
                return False
            return True

    def postpone(self, command: str) -> None:
        """The server did not answer for a result: it waits, longer each time."""
        with self._lock:
            if command in self._waiting:
                self._postpone(self._waiting[command])

    def _postpone(self, waiting: _Waiting) -> None:
        delay = min(_LONGEST_DELAY_S, _FIRST_DELAY_S * 2**waiting.failures)
        waiting.failures += 1
        waiting.not_before = self._steady() + delay

    def _load(self, path: Path) -> None:
        number, _, command = path.stem.partition("-")
        self._number = max(self._number, int(number) if number.isdigit() else 0)
        waiting = _Waiting(command, path.stat().st_size, path)
        self._waiting[command] = waiting
        self._document(waiting)

    def _document(self, waiting: _Waiting) -> dict[str, object] | None:
        """The result, or None when its file is bad: then it is put aside."""
        try:
            data = waiting.unsaved or state.read_private(waiting.path, most=MAX_RESULT_BYTES)
            document = _parsed(data or b"")
            if read_id(document, "command") != waiting.command:
                raise fields.FieldError("command: not the one of the file's name")
        except (state.StateError, strict_json.StrictJSONError, fields.FieldError):
            self._put_aside(waiting)
            self.lost.append(waiting.command)
            return None
        return document

    def _drop(self, waiting: _Waiting) -> None:
        # Gone from memory first: a file that stays is sent again after a restart, as a duplicate.
        del self._waiting[waiting.command]
        waiting.path.unlink(missing_ok=True)

    def _put_aside(self, waiting: _Waiting) -> None:
        del self._waiting[waiting.command]
        if waiting.path.exists():
            waiting.path.replace(self._aside / waiting.path.name)


def _try_to_save(waiting: _Waiting) -> None:
    if waiting.unsaved is None:
        return
    try:
        state.write_private(waiting.path, waiting.unsaved)
    except OSError:
        return
    waiting.unsaved = None


def _parsed(data: bytes) -> dict[str, object]:
    value = strict_json.loads(data, max_bytes=MAX_RESULT_BYTES)
    if not isinstance(value, dict):
        raise strict_json.StrictJSONError("not an object")
    return value
