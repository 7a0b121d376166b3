"""How long to wait before the next request: spread out, longer after each failure."""

import random
from dataclasses import dataclass, field

FIRST_S, LONGEST_S = 2.0, 120.0
# Where the server has said no: an operator must act first.
REFUSED_S = 300.0
SHORTEST_S, MOST_NEXT_S = 0.25, 3600.0
DEFAULT_NEXT_S = 30.0
_MOST_DOUBLINGS = 10


@dataclass
class Pace:
    """The delays of one agent. Chance spreads a whole fleet that lost its server at once."""

    chance: random.Random = field(default_factory=random.SystemRandom)
    failures: int = 0

    def after_success(self, next_in_s: float) -> float:
        """The server's own word, within bounds."""
        self.failures = 0
        return min(MOST_NEXT_S, max(SHORTEST_S, next_in_s))

    def after_failure(self, retry_after_s: float | None = None) -> float:
        """Between a half and the whole of a delay that doubles; never before Retry-After."""
        longest = min(LONGEST_S, FIRST_S * 2 ** min(self.failures, _MOST_DOUBLINGS))
        self.failures += 1
        delay = self.chance.uniform(longest / 2, longest)
        return delay if retry_after_s is None else retry_after_s + delay

    def after_refusal(self) -> float:
        """Slowly, while the server takes nothing from this agent."""
        return self.chance.uniform(REFUSED_S / 2, REFUSED_S)
