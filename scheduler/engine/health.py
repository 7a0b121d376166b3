"""How the queue is: one look at it, and the verdict."""

from collections.abc import Mapping
from datetime import datetime

from scheduler.engine import inspection
from scheduler.engine.inspection import MOST_LISTED, Edges, Leases
from scheduler.models.snapshots import snapshot
from scheduler.registry import REGISTRY
from scheduler.rules.health import QueueHealth, Signs, judge


def queue_health(now: datetime) -> QueueHealth:
    """Look at the queue once; what it reads is of one moment."""
    with snapshot():
        return _look(now)


def _look(now: datetime) -> QueueHealth:
    counts = inspection.count(now)
    paused = inspection.paused_queues()
    age = inspection.oldest_due_age(paused, now=now)
    runners, edges, leases = inspection.runners(), inspection.edges(), inspection.leases(now)
    stuck, quarantined = inspection.stuck(), inspection.quarantined()
    totals = dict(counts.totals)
    dependents, failed = totals.pop("dependents"), totals.pop("failed")
    by_kind = _by_kind({name: counts.by_kind[name] for name in totals})
    unknown = sorted(by_kind.keys() - REGISTRY.kinds.keys())[:MOST_LISTED]
    verdict, reasons = judge(
        Signs(runners, age, unknown, _troubles(leases, edges, len(stuck), totals["quarantined"]))
    )
    return QueueHealth(
        at=now,
        verdict=verdict,
        reasons=reasons,
        waiting=totals["waiting"],
        scheduled=totals["due"] + totals["later"],
        running=totals["running"],
        dependents=dependents,
        stuck_tasks=stuck,
        tasks_with_missing_deps=edges.missing,
        due=totals["due"],
        quarantined=totals["quarantined"],
        failed_runs_24h=failed,
        capped=counts.capped,
        by_state=totals,
        by_kind=by_kind,
        oldest_due_age_s=age,
        expired_leases=leases.expired[:MOST_LISTED],
        hung=leases.hung[:MOST_LISTED],
        quarantined_tasks=quarantined,
        waits=edges.waits,
        cycles=edges.cycles,
        unknown_kinds=unknown,
        paused_queues=paused,
        runners=runners,
    )


def _by_kind(by_state: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Turn counts by state and kind into counts by kind and state."""
    found: dict[str, dict[str, int]] = {}
    for state, kinds in by_state.items():
        for kind, count in kinds.items():
            found.setdefault(kind, {})[state] = count
    return found


def _troubles(leases: Leases, edges: Edges, stuck: int, quarantined: int) -> dict[str, int]:
    """How often each kind of trouble was seen, by its words."""
    return {
        "leases that nobody keeps": len(leases.expired),
        "bodies that have run for an hour or more": len(leases.hung),
        "quarantined tasks": quarantined,
        "tasks that wait for nothing": stuck,
        "tasks that wait for what is over": len(edges.missing),
        "circles of tasks that wait for each other": len(edges.cycles),
    }
