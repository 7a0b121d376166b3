"""How many runs ended in each of the last hours, well or not, in all and by schedule.

An hour that is over never changes (a result carries the time of its arrival), so it is counted
once in each process and remembered.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from django.core.cache import cache
from django.db.models import Count, Q
from django.db.models.functions import TruncHour

from fleet.models import Result
from fleet.rules.command_states import FAILURES, CommandState

HOUR = timedelta(hours=1)
HOURS_SHOWN = 24
_KEPT_FOR_S = 26 * 3600
_OK = frozenset({CommandState.SUCCEEDED.value})
_BAD = frozenset({state.value for state in FAILURES} | {CommandState.OUTCOME_UNKNOWN.value})


@dataclass(frozen=True, slots=True)
class Ended:
    """How many runs ended well, and how many did not."""

    ok: int = 0
    bad: int = 0

    def __add__(self, other: "Ended") -> "Ended":
        return Ended(self.ok + other.ok, self.bad + other.bad)


# Of each schedule, how many ended well and how many did not: plain, for it is kept by the
# thousand. Under None what belongs to no schedule.
Counts = Mapping[int | None, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Hour:
    """What ended in one hour."""

    starts_at: datetime
    counts: Counts = field(default_factory=dict)

    @property
    def ended(self) -> Ended:
        """All of it."""
        return Ended(
            sum(ok for ok, _ in self.counts.values()), sum(bad for _, bad in self.counts.values())
        )

    def of(self, schedule_id: int) -> Ended:
        """What ended of one schedule."""
        return Ended(*self.counts.get(schedule_id, (0, 0)))


def last_hours(now: datetime, count: int = HOURS_SHOWN) -> list[Hour]:
    """The last `count` hours, the oldest first; the last one is still going on."""
    current = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    wanted = [current - HOUR * back for back in range(count - 1, -1, -1)]
    known: dict[str, Counts] = cache.get_many([_key(hour) for hour in wanted])
    missing = [hour for hour in wanted if _key(hour) not in known]
    counted = _count(missing[0]) if missing else {}
    fresh = {_key(hour): counted.get(hour, {}) for hour in missing}
    # A transaction that began in the hour before may still be open: keep what is older than that.
    settled = {_key(hour): fresh[_key(hour)] for hour in missing if hour < current - HOUR}
    if settled:
        cache.set_many(settled, _KEPT_FOR_S)
    found = known | fresh
    return [Hour(hour, found[_key(hour)]) for hour in wanted]


def _key(hour: datetime) -> str:
    return f"fleet.activity.{hour:%Y%m%d%H}"


def _count(since: datetime) -> dict[datetime, Counts]:
    rows = (
        Result.objects.filter(received_at__gte=since, outcome__in=_OK | _BAD)
        .order_by()
        .annotate(hour=TruncHour("received_at", tzinfo=UTC))
        .values_list("hour", "schedule_id")
        .annotate(
            ok=Count("pk", filter=Q(outcome__in=_OK)), bad=Count("pk", filter=Q(outcome__in=_BAD))
        )
    )
    hours: dict[datetime, dict[int | None, tuple[int, int]]] = {}
    for hour, schedule_id, ok, bad in rows:
        hours.setdefault(hour, {})[schedule_id] = (ok, bad)
    return dict(hours)


def by_schedule(hours: Iterable[Hour]) -> dict[int | None, Ended]:
    """The same, added up for each schedule."""
    oks: Counter[int | None] = Counter()
    bads: Counter[int | None] = Counter()
    for hour in hours:
        for schedule_id, (ok, bad) in hour.counts.items():
            oks[schedule_id] += ok
            bads[schedule_id] += bad
    return {schedule_id: Ended(ok, bads[schedule_id]) for schedule_id, ok in oks.items()}
