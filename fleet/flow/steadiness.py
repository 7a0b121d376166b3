"""Whether an agent's silence says something about the agent, or about the server.

After the server was down every agent looks silent at first. Parking is for agents that stay away
while ticks come regularly and others are heard.
"""

from datetime import datetime, timedelta

from django.db.models import F

from fleet.flow.rosters import is_alive
from fleet.models import AgentPresence, ScheduleAgent, TickMark
from fleet.rules.liveness import ALIVE_FOR

# A longer pause between two ticks means that nobody ticked.
LONGEST_PAUSE = timedelta(minutes=3)
# The time in which agents that are there come back after an outage.
PATIENCE = timedelta(minutes=5)
# So many rows are parked in one go: silent agents never cost one tick much.
BATCH = 1000


def begin_tick(*, now: datetime) -> TickMark:
    """The mark of the tick before, moved on but not yet stored: since when does silence count?"""
    mark, _ = TickMark.objects.get_or_create(pk=1)
    paused = mark.last_tick_at is None or now - mark.last_tick_at > LONGEST_PAUSE
    heard = AgentPresence.objects.filter(last_seen_at__gte=now - ALIVE_FOR).exists()
    if paused or not heard:
        mark.steady_since = None
    elif mark.steady_since is None:
        mark.steady_since = now
    return mark


def end_tick(mark: TickMark, *, was_frozen: bool, now: datetime) -> None:
    """Store the mark once everything has been looked at."""
    TickMark.objects.filter(pk=mark.pk).update(
        last_tick_at=now, steady_since=mark.steady_since, was_frozen=was_frozen
    )


def is_steady(mark: TickMark, *, now: datetime) -> bool:
    """Whether silence has counted for long enough."""
    return mark.steady_since is not None and now - mark.steady_since >= PATIENCE


def park_silent(schedule_id: int, *, now: datetime) -> int:
    """Take due agents that are silent out of the tick's way; return how many.

    An agent's own next exchange puts its rows back.
    """
    due = ScheduleAgent.objects.due(now).filter(schedule=schedule_id)
    silent = due.exclude(is_alive(now, "agent__")).order_by("due_at", "agent_id")
    rows = list(silent.values_list("pk", "due_at")[:BATCH])
    for_update = ScheduleAgent.objects.filter(pk__in=[pk for pk, _ in rows], due_at__lte=now)
    return for_update.update(parked_due_at=F("due_at"), due_at=None)
