"""Where the shapes of the small charts lie, in the units of their picture. No markup here."""

from collections.abc import Sequence
from dataclasses import dataclass

# A share that exists is seen, however small.
LEAST_SHARE = 1.0
HEAT_LEVELS = 4


@dataclass(frozen=True, slots=True)
class Count:
    """How many went well and how many did not under one label (an hour, a day)."""

    label: str
    ok: int
    bad: int

    @property
    def total(self) -> int:
        """Both together."""
        return self.ok + self.bad


@dataclass(frozen=True, slots=True)
class Bar:
    """One stacked bar: `ok` stands on the ground line and `bad` on top of it."""

    count: Count
    x: float
    width: float
    ok_y: float
    ok_height: float
    bad_y: float
    bad_height: float

    @property
    def middle(self) -> float:
        """Where its label stands."""
        return round(self.x + self.width / 2, 2)


@dataclass(frozen=True, slots=True)
class Bars:
    """A bar chart: its bars, and the round number at its top line."""

    bars: tuple[Bar, ...]
    top: int
    width: float
    height: float


def nice_top(most: int) -> int:
    """The smallest of 1, 2, 5, 10, 20, 50, … that is not below `most`."""
    top = 1
    steps = (2, 5 / 2, 2)
    step = 0
    while top < most:
        top = round(top * steps[step % 3])
        step += 1
    return top


def bars(counts: Sequence[Count], *, width: float, height: float, gap: float = 2.0) -> Bars:
    """Lay out one bar a count, left to right, as high as its share of the top line."""
    top = nice_top(max((count.total for count in counts), default=0))
    step = width / len(counts) if counts else width
    shapes = []
    for index, count in enumerate(counts):
        ok_height = round(height * count.ok / top, 2)
        bad_height = round(height * count.bad / top, 2)
        if count.bad:
            # One failure among ten thousand runs must still be seen.
            bad_height = max(bad_height, 2.0)
        ok_y = round(height - ok_height, 2)
        shapes.append(
            Bar(
                count=count,
                x=round(index * step + gap / 2, 2),
                width=round(max(step - gap, 0.5), 2),
                ok_y=ok_y,
                ok_height=ok_height,
                bad_y=round(max(ok_y - bad_height, 0), 2),
                bad_height=bad_height,
            )
        )
    return Bars(bars=tuple(shapes), top=top, width=width, height=height)


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a whole under its word; `tone` is ok, bad, warn, run or idle."""

    word: str
    count: int
    tone: str


@dataclass(frozen=True, slots=True)
class Segment:
    """Where a part lies on a line that is 100 long."""

    part: Part
    x: float
    width: float


def shares(parts: Sequence[Part]) -> tuple[Segment, ...]:
    """Lay the parts side by side on a line of 100; one that exists is at least LEAST_SHARE wide."""
    there = [part for part in parts if part.count > 0]
    whole = sum(part.count for part in there)
    if not whole:
        return ()
    widths = [max(100 * part.count / whole, LEAST_SHARE) for part in there]
    scale = 100 / sum(widths)
    segments, x = [], 0.0
    for part, width in zip(there, widths, strict=True):
        segments.append(Segment(part, round(x, 2), round(width * scale, 2)))
        x += width * scale
    return tuple(segments)


def line(values: Sequence[float], *, width: float, height: float) -> str:
    """The points of a small line through `values`, for an SVG polyline; empty under two values."""
    if len(values) < 2:  # noqa: PLR2004  # a line needs two points
        return ""
    low, high = min(values), max(values)
    span = (high - low) or 1
    step = width / (len(values) - 1)
    return " ".join(
        f"{round(index * step, 2)},{round(height - height * (value - low) / span, 2)}"
        for index, value in enumerate(values)
    )


def heat(value: int, *, most: int) -> int:
    """The level 0 to HEAT_LEVELS of a cell; only nothing at all is 0."""
    if value <= 0:
        return 0
    return min(HEAT_LEVELS, 1 + (HEAT_LEVELS * value - 1) // max(most, 1))
