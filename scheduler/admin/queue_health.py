"""The page of the queue's health: what `/api/v1/queue/` answers, for people."""

from typing import Any

from scheduler.rules.health import QueueHealth

# Both at once: the page names tasks and runners.
SEES_HEALTH = ("scheduler.view_task", "scheduler.view_runner")


def health_page(queue: QueueHealth) -> dict[str, Any]:
    """Return what the page shows beside the report: its table of kinds and states."""
    states = list(queue.by_state)
    return {
        "title": "How the queue is",
        "queue": queue,
        "states": states,
        "kinds": [
            (kind, [counts.get(state, 0) for state in states])
            for kind, counts in sorted(queue.by_kind.items())
        ],
        "totals": list(queue.by_state.values()),
    }
