"""What a simulation counts, and what it says in the end."""

from collections import Counter
from dataclasses import dataclass, field

MOST_PROBLEMS_TOLD = 5


@dataclass(slots=True)
class Tally:
    """Counts of one run; times are seconds."""

    counts: Counter[str] = field(default_factory=Counter)
    problems: Counter[str] = field(default_factory=Counter)
    carrying: list[float] = field(default_factory=list)
    empty: list[float] = field(default_factory=list)

    @property
    def errors(self) -> int:
        """How many requests got no answer that counts, whatever the reason."""
        return self.problems.total()

    def start_over(self) -> None:
        """Forget the times so far: they are those of a fleet that is being switched on."""
        self.carrying.clear()
        self.empty.clear()

    def note_exchange(self, seconds: float, *, carried: bool) -> None:
        """Count an exchange that was answered; one that carries something is the measure."""
        self.counts["exchanges"] += 1
        (self.carrying if carried else self.empty).append(seconds)

    def document(self) -> dict[str, object]:
        """Return the counts and percentiles as a JSON object, milliseconds where it says ms."""
        told = ("enrolled", "exchanges", "waits", "calls", "commands", "started", "results")
        return {
            **{name: self.counts[name] for name in told},
            "told_to_wait": self.counts["told to wait"],
            "exchanges_that_carry": len(self.carrying),
            "carrying_p50_ms": _ms(self.carrying, 0.5),
            "carrying_p99_ms": _ms(self.carrying, 0.99),
            "empty_p50_ms": _ms(self.empty, 0.5),
            "empty_p99_ms": _ms(self.empty, 0.99),
            "errors": self.errors,
            "problems": dict(self.problems.most_common(MOST_PROBLEMS_TOLD)),
        }


def _ms(values: list[float], share: float) -> float | None:
    """Return the nearest-rank percentile in milliseconds, None of nothing."""
    if not values:
        return None
    ranked = sorted(values)
    return round(ranked[max(0, -(-len(ranked) * round(share * 1000) // 1000) - 1)] * 1000, 1)
