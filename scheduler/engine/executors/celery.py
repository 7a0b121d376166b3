"""Run bodies in Celery's workers: a message carries the id of a task, the worker claims its row.

Whoever claims the row runs it, once; a message that comes twice, late or for nothing is harmless.
"""

from celery import shared_task
from django.utils import timezone

from scheduler.engine.dispatch import RUN
from scheduler.engine.guest import Guest, host

_GUEST = Guest(timezone.now, name=f"celery@{host()}")


@shared_task(name=RUN, ignore_result=True)  # type: ignore[untyped-decorator]  # Celery has no types
def run(task_id: int) -> None:
    """Claim a task with a lease, run its body, write its end."""
    _GUEST.run_one(task_id)
