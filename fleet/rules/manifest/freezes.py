"""The freeze: one record that stops the whole fleet, now or for a period."""

from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

from fleet.rules.bounds import Bounds
from fleet.rules.manifest.parts import opened
from fleet.rules.manifest.timing import read_bounds, read_zone
from fleet.rules.problems import ManifestError, Problem
from fleet.rules.reader import Reader

MAX_REASON = 1_000
OFF = "off"
_KEYS = "from, until, reason, tz"


@dataclass(frozen=True, slots=True)
class FreezeManifest:
    """A valid freeze; without bounds it holds until it is cleared. `off` = not frozen."""

    bounds: Bounds = field(default_factory=Bounds)
    reason: str = ""
    tz: str = "local"
    off: bool = False
    document: dict[str, object] = field(compare=False, repr=False, kw_only=True)
    warnings: tuple[Problem, ...] = field(default=(), compare=False)


def parse_freeze(document: object, *, local: ZoneInfo | None = None) -> FreezeManifest:
    """The freeze of `{freeze: {…}}` or of the inner mapping alone (what the API takes).

    `freeze: off` means that there is none. A `freeze:` without a value is refused: it could be
    meant either way.
    """
    if not isinstance(document, dict) or "freeze" not in document:
        return _read(opened(document, _KEYS), local)
    beside = sorted(str(key) for key in document.keys() - {"freeze"})
    if beside:
        raise ManifestError([Problem(key, "stands beside freeze; remove it") for key in beside])
    inner = document["freeze"]
    if inner in (OFF, False):
        return FreezeManifest(off=True, document={"freeze": OFF})
    return _read(opened(inner, f"{_KEYS}; or the word off", "freeze"), local)


def _read(reader: Reader, local: ZoneInfo | None) -> FreezeManifest:
    zone_name = read_zone(reader)
    bounds = read_bounds(reader, zone_name, local)
    reason = reader.text("reason", most=MAX_REASON, lines=True) or ""
    canonical = reader.finish()
    reader.notes.raise_problems()
    return FreezeManifest(bounds, reason, zone_name, document={"freeze": canonical})
