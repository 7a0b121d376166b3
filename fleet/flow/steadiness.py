"""Whether an agent's silence says something about the agent, or about the server.

After the server was down every agent looks silent at first. Parking is for agents that stay away
while ticks come regularly and others are heard.
"""

from datetime import datetime, timedelta

from django.db.models import F

from fleet.flow.rosters import is_alive
from fleet.models import Agent, ScheduleAgent, TickMark

# A longer pause between two ticks means that nobody ticked.
LONGEST_PAUSE = timedelta(minutes=3)
# The time in which agents that are there come back after an outage.
PATIENCE = timedelta(minutes=5)
# So many rows are parked in one go: silent agents never cost one tick much.
BATCH = 1000


def mark_tick(*, now: datetime) -> TickMark:
    """Note the tick; the mark says since when silence counts (`steady_since`)."""
    mark, _ = TickMark.objects.get_or_create(pk=1)
    paused = mark.last_tick_at is None or now - mark.last_tick_at > LONGEST_PAUSE
    heard = Agent.objects.filter(is_alive(now)).exists()
    if paused or not heard:
        mark.steady_since = None
    elif mark.steady_since is None:
        mark.steady_since = now
    mark.last_tick_at = now
    mark.save(update_fields=["last_tick_at", "steady_since"])
    return mark


def is_steady(mark: TickMark, *, now: datetime) -> bool:
    """Whether silence has counted for long enough."""
    return mark.steady_since is not None and now - mark.steady_since >= PATIENCE


def park_silent(schedule_id: int, *, now: datetime) -> int:
    """Take due agents that are silent out of the tick's way; return how many.

    An agent's own next exchange puts its rows back.
    """
    due = ScheduleAgent.objects.due(now).filter(schedule=schedule_id)
    silent = due.exclude(is_alive(now, "agent__")).order_by("due_at", "agent")
    rows = list(silent.values_list("pk", "due_at")[:BATCH])
    for_update = ScheduleAgent.objects.filter(pk__in=[pk for pk, _ in rows], due_at__lte=now)
    return for_update.update(parked_due_at=F("due_at"), due_at=None)
