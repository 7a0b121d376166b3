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
    """A result and when it may be sent again; `path` is None while the disk refuses it."""

    command: str
    document: bytes
    path: Path | None
    failures: int = 0
    not_before: float = 0.0


class Outbox:
    """The results that wait, oldest first."""

    def __init__(self, folder: Path, *, steady: Callable[[], float] = steady_seconds) -> None:
        """Open the folder; `lost` then names the commands whose results could not be read."""
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
            waiting = _Waiting(command, data, path=None)
            self._waiting[command] = waiting
            self._try_to_save(waiting)

    def due(self, *, most_bytes: int) -> list[dict[str, object]]:
        """The results to send now, oldest first, at most `most_bytes` of JSON, but one at least."""
        chosen: list[bytes] = []
        left = most_bytes
        with self._lock:
            now = self._steady()
            for waiting in self._waiting.values():
                self._try_to_save(waiting)
                if waiting.not_before > now:
                    continue
                if chosen and len(waiting.document) > left:
                    break
                chosen.append(waiting.document)
                left -= len(waiting.document)
        return [_parsed(data) for data in chosen]

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
        try:
            data = state.read_private(path, most=MAX_RESULT_BYTES)
            document = _parsed(data or b"")
            if read_id(document, "command") != command:
                raise fields.FieldError("command: not the one of the file's name")
        except (state.StateError, strict_json.StrictJSONError, fields.FieldError):
            path.replace(self._aside / path.name)
            self.lost.append(command)
        else:
            self._waiting[command] = _Waiting(command, data or b"", path)

    def _try_to_save(self, waiting: _Waiting) -> None:
        if waiting.path is not None:
            return
        path = self._folder / f"{self._number + 1:012d}-{waiting.command}.json"
        try:
            state.write_private(path, waiting.document)
        except OSError:
            return
        self._number += 1
        waiting.path = path

    def _drop(self, waiting: _Waiting) -> None:
        # Gone from memory first: a file that stays is sent again after a restart, as a duplicate.
        del self._waiting[waiting.command]
        if waiting.path is not None:
            waiting.path.unlink(missing_ok=True)

    def _put_aside(self, waiting: _Waiting) -> None:
        del self._waiting[waiting.command]
        if waiting.path is not None:
            waiting.path.replace(self._aside / waiting.path.name)


def _parsed(data: bytes) -> dict[str, object]:
    value = strict_json.loads(data, max_bytes=MAX_RESULT_BYTES)
    if not isinstance(value, dict):
        raise strict_json.StrictJSONError("not an object")
    return value
