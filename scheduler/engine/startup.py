"""What a runner does once, before its first look: register, and set aside what is unreadable."""

import logging
from datetime import datetime
from typing import Any

from scheduler.engine.enqueue import enqueue
from scheduler.models import Task
from scheduler.registry import REGISTRY, Declared
from scheduler.rules.contained import contained
from scheduler.rules.orders import make_order
from scheduler.rules.outcomes import quarantined_for_cron
from scheduler.rules.states import TaskState
from scheduler.rules.timing import Recurrence, UnusableCronError

logger = logging.getLogger(__name__)


def register_declared(*, now: datetime) -> int:
    """Request every recurring task that code declared; return how many could be."""
    registered = 0
    for declared in list(REGISTRY.declared.values()):
        with contained("recurring task not registered", kind=declared.kind, key=declared.key):
            _register(declared, now=now)
            registered += 1
    return registered


def _register(declared: Declared, *, now: datetime) -> None:
    kind = REGISTRY.get(declared.kind)
    options: dict[str, Any] = dict(declared.options)
    options["queue"] = options["queue"] or kind.queue or "default"
    enqueue(make_order(declared.kind, key=declared.key, now=now, **options), now=now)


def set_aside_unusable(*, now: datetime) -> int:
    """Quarantine pending tasks whose stored recurrence cannot be read; return how many."""
    rows = Task.objects.filter(state=TaskState.PENDING.value, cron__isnull=False).order_by()
    found = 0
    for cron, override, tz, day_rule in (
        rows.values_list("cron", "cron_override", "tz", "day_rule").distinct().iterator()
    ):
        try:
            Recurrence(override or cron or "", tz, day_rule).require_usable()
        except UnusableCronError as error:
            same = rows.filter(cron=cron, cron_override=override, tz=tz, day_rule=day_rule)
            found += same.update(**quarantined_for_cron(error), updated_at=now)
            logger.error(  # the row is at fault, a traceback says nothing
                "unusable cron", extra={"action": "task quarantined", "cron": cron, "tz": tz}
            )
    return found
