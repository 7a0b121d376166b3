"""Reads a schedule's constraints, bounds, zone, misfire and what happens on failure."""

from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from zoneinfo import ZoneInfo

from fleet.rules.bounds import Bounds, parse_bound, zone_named
from fleet.rules.reader import Reader
from fleet.rules.retries import LEAST_BACKOFF, MAX_RETRIES, MOST_BACKOFF, RetryPolicy
from fleet.rules.windows import Hours, Window, parse_skip_date, parse_window
from fleet.rules.wording import kind_of
from scheduler.rules.zones import zone

MAX_SKIP_DATES = 400
MAX_CONCURRENT = 100_000


class RunsOn(StrEnum):
    """Who watches the clock: the server, or each agent by itself."""

    BACKEND = "backend"
    AGENT = "agent"


class Misfire(StrEnum):
    """What becomes of the times that were missed."""

    SKIP = "skip"
    ONCE = "once"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Constraints:
    """When and how much at a time a schedule may start."""

    window: Window | None = None
    skip_dates: tuple[date, ...] = ()
    max_concurrent: int | None = None

    @property
    def hours(self) -> Hours:
        """The window and the skipped dates, to be asked about a moment."""
        return Hours(self.window, frozenset(self.skip_dates))


def read_zone(reader: Reader) -> str:
    """`local`, `utc` or an IANA name."""

    def known(name: str) -> str:
        zone_named(name, zone("UTC"))
        return name

    name = reader.parsed("tz", known) or "local"
    if name == "local":
        reader.document.pop("tz", None)
    return name


def read_bounds(reader: Reader, zone_name: str, local: ZoneInfo | None) -> Bounds:
    """`from` and `until` of the mapping that `reader` reads; `local` None = not known here."""
    try:
        tz = local if zone_name == "local" else zone_named(zone_name, zone("UTC"))
    except ValueError:  # noted at `tz`
        tz = None

    def known(text: str) -> str:
        parse_bound(text, zone("UTC"))
        return text

    bounds = Bounds(reader.parsed("from", known), reader.parsed("until", known))
    if message := bounds.order_problem(tz):
        reader.problem("from", message)
    return bounds


def read_constraints(reader: Reader, runs_on: RunsOn) -> Constraints:
    """The constraints; none where the key is absent."""
    part = reader.child("constraints", "window, skip_dates, max_concurrent")
    window = part.parsed("window", parse_window)
    skip_dates = part.texts("skip_dates", parse_skip_date, most=MAX_SKIP_DATES)
    if runs_on is RunsOn.AGENT and part.has("max_concurrent"):
        part.raw("max_concurrent")
        part.problem("max_concurrent", "works with runs_on: backend only; agents cannot count")
        cap = None
    else:
        cap = part.integer("max_concurrent", least=1, most=MAX_CONCURRENT)
    part.refuse({"require": "is not supported: runs would not be held back; remove it"})
    part.finish()
    return Constraints(window, skip_dates, cap)


def read_on_failure(reader: Reader) -> tuple[RetryPolicy | None, bool]:
    """The retry policy, and whether a PC that keeps failing is tried less and less often."""
    part = reader.child("on_failure", "retry, backoff")
    policy = _read_retry(part) if part.has("retry") else None
    part.raw("retry")
    backs_off = _read_backoff(part)
    part.finish()
    return policy, backs_off


def _read_retry(part: Reader) -> RetryPolicy:
    retry = part.child("retry", "max, backoff")
    for key, example in (("max", "max: 2"), ("backoff", "backoff: 5m")):
        if not retry.has(key):
            retry.missing(key, example)
    most = retry.integer("max", least=1, most=MAX_RETRIES)
    backoff = retry.duration("backoff", least=LEAST_BACKOFF, most=MOST_BACKOFF)
    retry.finish()
    return RetryPolicy(most or 1, backoff or LEAST_BACKOFF)


def _read_backoff(part: Reader) -> bool:
    """`on` (the default) or `off`; other loaders of YAML make truth values of these words."""
    value = part.raw("backoff")
    if value in ("off", False):
        part.document["backoff"] = "off"
        return False
    if part.has("backoff") and value not in ("on", True):
        part.problem("backoff", f"must be on or off, not {kind_of(value)}")
    return True
