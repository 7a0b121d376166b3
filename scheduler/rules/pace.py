"""How many tasks to take ahead, by how long their bodies last."""

import math

# Bodies taken ahead are to begin within this many seconds.
AHEAD = 0.02
MOST_AHEAD = 100
# How much the newest body weighs.
WEIGHT = 0.2


class Pace:
    """The usual duration of the bodies of one runner, as seen lately."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._usual: float | None = None

    def note(self, seconds: float) -> None:
        """Note how long a body lasted."""
        known = self._usual
        self._usual = seconds if known is None else known + WEIGHT * (seconds - known)

    @property
    def ahead(self) -> int:
        """How many tasks to take beyond those that begin at once; none until it is known."""
        if self._usual is None:
            return 0
        if self._usual * MOST_AHEAD <= AHEAD:
            return MOST_AHEAD
        return math.floor(AHEAD / self._usual)

    def stall(self) -> None:
        """Note that tasks taken ahead have not begun: take none until bodies are short again."""
        self._usual = 1.0
