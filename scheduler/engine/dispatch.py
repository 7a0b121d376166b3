"""The runner of `KANADE_ENGINE=celery`: it tells workers what is due, and runs what none took.

The broker only wakes them. What is still there SWEEP_AFTER its time, because a message was lost,
the broker is away or no worker listens, the runner takes itself.
"""

import logging
import queue
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from scheduler.conf import Broker
from scheduler.engine import claim
from scheduler.engine.broker import ONCE_MORE, sender
from scheduler.engine.intake import Intake, Taken
from scheduler.models import Queue, Task
from scheduler.registry import REGISTRY
from scheduler.rules.contained import contained

logger = logging.getLogger(__name__)

RUN: Final = "kanade.run"
SWEEP_AFTER = timedelta(seconds=30)
# Seconds until a worker is told once more of a task that nobody took.
AGAIN_AFTER = 10.0
MOST_AT_ONCE = 1_000
# After a message that could not be sent, in seconds.
PAUSE = 1.0


class Outbox:
    """Sends messages in a thread of its own, so that a broker that is slow holds nobody up."""

    def __init__(self, broker: Broker) -> None:
        """Start the thread."""
        self.sent = 0
        self._broker = broker
        self._ids: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._stopped = threading.Event()
        threading.Thread(target=self._send_all, name="outbox", daemon=True).start()

    def put(self, task_ids: Iterable[int]) -> None:
        """Have messages sent."""
        for task_id in task_ids:
            self._ids.put(task_id)

    def _send_all(self) -> None:
        while not self._stopped.is_set():
            before = self.sent
            with contained("message to a worker not sent"):
                self._send(self._ids.get())
                self.sent += 1
            if self.sent > before:
                continue
            # Nor would the others be; the runner tells of them again, or takes them.
            while not self._ids.empty():
                self._ids.get()
            self._stopped.wait(PAUSE)

    def _send(self, task_id: int) -> None:
        app = sender(self._broker.url)
        app.send_task(RUN, args=[task_id], queue=self._broker.queue, **ONCE_MORE)


@dataclass(slots=True)
class Dispatching(Intake):
    """Tells workers of what is due, and takes what was left lying."""

    outbox: Outbox | None = None
    _told_at: dict[int, float] = field(default_factory=dict)

    def fill(self, *, at: float, now: datetime) -> Taken:
        """Tell of due tasks once, then once more; claim those that are overdue."""
        claim.promote(now=now)
        due = set(self._due(now))
        self._told_at = {one: told for one, told in self._told_at.items() if one in due}
        untold = [one for one in due if at - self._told_at.get(one, -AGAIN_AFTER) >= AGAIN_AFTER]
        if self.outbox is not None:
            self.outbox.put(sorted(untold))
        self._told_at |= dict.fromkeys(untold, at)
        # A dataclass with slots is another class than the one that super() means.
        taken = Intake.fill(self, at=at, now=now)
        return replace(taken, next_due=claim.next_due())

    def _due(self, now: datetime) -> Iterable[int]:
        rows = Task.objects.ready_until(now).filter(kind__in=sorted(REGISTRY.kinds))
        if self.queues is not None:
            rows = rows.filter(queue__in=self.queues)
        paused = Queue.objects.filter(paused=True).values("name")
        return rows.exclude(queue__in=paused).values_list("pk", flat=True)[:MOST_AT_ONCE]

    def _until(self, now: datetime) -> datetime:
        return now - SWEEP_AFTER
