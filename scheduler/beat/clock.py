"""Celery beat as the clock: each of its ticks runs what is due, once, whoever else does too."""

from celery import shared_task
from django.utils import timezone
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from scheduler.conf import broker
from scheduler.engine import startup
from scheduler.engine.guest import Guest, host
from scheduler.rules.beat import TICK

NAME = "Kanade's ticks"
WORKERS = 4
# One name on each machine, so that a process that is gone is not missed once another is there.
_GUEST = Guest(timezone.now, name=f"beat@{host()}", workers=WORKERS)


@shared_task(name=TICK, ignore_result=True)  # type: ignore[untyped-decorator]  # Celery has no types
def tick() -> bool:
    """Run all that is due; False if this process is at it already."""
    if not _GUEST.has_begun:
        now = timezone.now()
        startup.set_aside_unusable(now=now)
        startup.register_declared(now=now)
    return _GUEST.work_off()


def install(every: int) -> None:
    """Have beat send a tick every so many seconds; it replaces an earlier choice."""
    schedule, _ = IntervalSchedule.objects.get_or_create(
        every=every, period=IntervalSchedule.SECONDS
    )
    values = {
        "task": TICK,
        "interval": schedule,
        "queue": broker().queue,
        # A tick that waited for a worker until the next one is worth nothing.
        "expire_seconds": every,
        "enabled": True,
        "description": "Runs the tasks that are due; made by the command beattick.",
    }
    PeriodicTask.objects.update_or_create(name=NAME, defaults=values)


def remove() -> bool:
    """Have beat send no ticks any more; return whether it did."""
    row = PeriodicTask.objects.filter(name=NAME).first()
    if row is None:
        return False
    row.delete()
    return True
