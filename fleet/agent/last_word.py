"""What the server last said about the freeze and the time, for a PC that boots without it."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fleet.agent import fields, state
from fleet.agent.gate import Freeze, read_freeze

FILE = "last-word.json"
# The two clocks drift apart slowly; the freeze is written whenever it changes.
WRITTEN_EVERY = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class LastWord:
    """The freeze and the server's time, beside what the PC's clock showed then (all UTC)."""

    freeze: Freeze
    server_time: datetime
    wall: datetime

    def server_time_at(self, wall: datetime) -> datetime | None:
        """The server's time by the PC's clock; None where that clock has been set back."""
        estimate = self.server_time + (wall - self.wall)
        return estimate if estimate >= self.server_time else None


class LastWordFile:
    """The last word on disk."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._known: LastWord | None = None

    def read(self) -> LastWord | None:
        """What the file says; None where it says nothing that can be read."""
        try:
            stored = state.read_json(self._path)
            if stored is None:
                return None
            return LastWord(
                read_freeze(stored),
                fields.moment(stored, "server_time"),
                fields.moment(stored, "wall"),
            )
        except (state.StateError, fields.FieldError):
            return None

    def write(self, freeze: Freeze, server_time: datetime) -> None:
        """Store the word when there is news in it. Raises OSError."""
        known = self._known
        if known and known.freeze == freeze and server_time - known.server_time < WRITTEN_EVERY:
            return
        word = LastWord(freeze, server_time, datetime.now(UTC))
        state.write_json(self._path, _written(word))
        self._known = word


def _written(word: LastWord) -> dict[str, object]:
    freeze = word.freeze
    return {
        "freeze": {
            "frozen": freeze.frozen,
            "reason": freeze.reason,
            "from": freeze.starts_at.isoformat() if freeze.starts_at else None,
            "until": freeze.ends_at.isoformat() if freeze.ends_at else None,
            "unreadable": freeze.unreadable,
        },
        "server_time": word.server_time.isoformat(),
        "wall": word.wall.isoformat(),
    }
