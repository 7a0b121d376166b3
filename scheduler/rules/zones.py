"""Time zones by name, and which instants show a wall clock.

Importing this module makes `zoneinfo` read the pinned `tzdata` package alone, so that the server,
every runner and every PC compute with the same zone data, whatever their system has installed.
"""

import difflib
import zoneinfo
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

import tzdata

zoneinfo.reset_tzpath(to=[])
ZoneInfo.clear_cache()

TZDATA_VERSION: str = tzdata.IANA_VERSION
LONGEST_NAME = 64
SECOND = timedelta(seconds=1)
# Two changes of one zone are never this close: half a day cannot step over one.
STRIDE = timedelta(hours=12)


class ZoneError(ValueError):
    """The name is no time zone; the message says so and proposes one."""


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """Return the names that people may choose, without the doubles of system folders."""
    return frozenset(
        name
        for name in zoneinfo.available_timezones()
        if not name.startswith(("posix", "right", "localtime"))
    )


def zone(name: object) -> ZoneInfo:
    """Return the zone of an IANA name such as `Europe/Budapest`; raise ZoneError otherwise."""
    if not isinstance(name, str):
        raise ZoneError(f"a time zone is a name such as Europe/Budapest, not {name!r:.40}")
    if len(name) > LONGEST_NAME:
        raise ZoneError(
            f"a time zone name has at most {LONGEST_NAME} characters, this has {len(name)}"
        )
    # ZoneInfo itself answers bad names with four kinds of error, some of them about files.
    if name not in zone_names():
        raise ZoneError(f"{name!r} is no time zone; {_proposal(name)}")
    return ZoneInfo(name)


def _proposal(name: str) -> str:
    by_fold = {known.casefold(): known for known in zone_names()}
    near = difflib.get_close_matches(name.strip().casefold(), by_fold, n=1)
    if near:
        return f"did you mean {by_fold[near[0]]}?"
    return "names look like Europe/Budapest or UTC"


def instants(wall: datetime, tz: tzinfo) -> tuple[datetime, ...]:
    """Return the UTC instants at which clocks in `tz` show the naive `wall`, earliest first.

    None in a gap, two in a repeated stretch, else one.
    """
    if wall.tzinfo is not None:
        raise ValueError("a wall clock has no zone of its own")
    early = wall.replace(tzinfo=tz, fold=0)
    late = early.replace(fold=1)
    if early.utcoffset() == late.utcoffset():
        return (early.astimezone(UTC),)
    found = (side.astimezone(UTC) for side in (early, late))
    return tuple(sorted({one for one in found if _clock(one, tz) == wall}))


def at(wall: datetime, tz: tzinfo) -> datetime:
    """Return the first UTC instant whose clock shows `wall`; in a gap the instant of the jump."""
    found = instants(wall, tz)
    return found[0] if found else jump_over(wall, tz)[0]


def jump_over(wall: datetime, tz: tzinfo) -> tuple[datetime, timedelta]:
    """Return the UTC instant and the size of the jump that leaves out `wall`."""
    # In a gap fold 1 reads the clock after the jump, and so names the earlier instant.
    low = wall.replace(tzinfo=tz, fold=1).astimezone(UTC)
    high = wall.replace(tzinfo=tz, fold=0).astimezone(UTC)
    moment = _bisect(low - SECOND, high, tz)
    return moment, offset_at(moment, tz) - offset_at(low - SECOND, tz)


def offset_at(moment: datetime, tz: tzinfo) -> timedelta:
    """Return the offset of `tz` from UTC at an instant."""
    offset = moment.astimezone(tz).utcoffset()
    assert offset is not None  # an aware datetime has one
    return offset


def first_change(tz: tzinfo, after: datetime, until: datetime) -> datetime | None:
    """Return the first UTC instant in (after, until] at which the offset of `tz` changes."""
    if until - after <= STRIDE:
        same = offset_at(after, tz) == offset_at(until, tz)
        return None if same else _bisect(after, until, tz)
    for year in range(after.year, until.year + 1):
        for moment in _changes_of(tz, year):
            if after < moment:
                return moment if moment <= until else None
    return None


@lru_cache(maxsize=4096)
def _changes_of(tz: tzinfo, year: int) -> tuple[datetime, ...]:
    """Return the changes of offset in a UTC year; kept, for a far search asks again and again."""
    found = []
    low = datetime(year, 1, 1, tzinfo=UTC) - SECOND
    end = datetime(year + 1, 1, 1, tzinfo=UTC) - SECOND
    before = offset_at(low, tz)
    while low < end:
        high = min(low + STRIDE, end)
        after = offset_at(high, tz)
        if before != after:
            found.append(_bisect(low, high, tz))
        low, before = high, after
    return tuple(found)


def _bisect(low: datetime, high: datetime, tz: tzinfo) -> datetime:
    """Return the first whole second in (low, high] with another offset than `low` has."""
    before = offset_at(low, tz)
    low, high = low.replace(microsecond=0), high.replace(microsecond=0)
    while high - low > SECOND:
        middle = low + timedelta(seconds=(high - low) // SECOND // 2)
        if offset_at(middle, tz) == before:
            low = middle
        else:
            high = middle
    return high


def _clock(moment: datetime, tz: tzinfo) -> datetime:
    return moment.astimezone(tz).replace(tzinfo=None, fold=0)
