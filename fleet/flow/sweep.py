"""Nobody came: end what waits in vain, and put counters right. Every five minutes.

Each part is independent and contained: one that fails does not stop the others.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Count, F, Q, QuerySet

from fleet.flow.closing import close_all, end_executions, give_up
from fleet.flow.waves import release_due_waves
from fleet.models import Command, Execution, Job
from fleet.rules.command_states import HELD, NO_LIMIT_KNOWN, WAITING, CommandState
from fleet.rules.execution_states import ExecutionState
from scheduler.public import request
from scheduler.rules.contained import contained

# So many commands end in one transaction.
BATCH = 500
# Planning that has not begun to move after so long has lost its task.
PLANNING_PATIENCE = timedelta(minutes=2)
# The commit that closes the last command ends its execution; this finds what crashed in between.
ENDING_PATIENCE = timedelta(minutes=1)
EXPIRED = "not handed out before its deadline"
SILENT = "the PC did not report how it ended"
NOT_APPROVED = "nobody approved it in time"
_WAITING = [state.value for state in WAITING]
_HELD = [state.value for state in HELD]


def sweep(*, now: datetime) -> dict[str, int]:
    """Do all parts; return how many rows each of them changed, the idle ones left out."""
    changed: dict[str, int] = {}
    for name, part in PARTS.items():
        with contained("fleet swept", part=name):
            count = part(now)
            if count:
                changed[name] = count
    return changed


def expire_commands(now: datetime) -> int:
    """End commands that nobody fetched before their deadline (which itself still counts)."""
    late = Command.objects.filter(state__in=_WAITING, deadline_at__lt=now)

    def end(batch: QuerySet[Command]) -> int:
        return len(close_all(batch, CommandState.EXPIRED, reason=EXPIRED, now=now))

    return _in_batches(late.order_by("deadline_at"), end)


def give_up_silent(now: datetime) -> int:
    """End commands whose agent has not answered in the time that a run may take."""
    unlimited = Q(reap_at=None, handed_out_at__lt=now - NO_LIMIT_KNOWN)
    silent = Command.objects.filter(Q(reap_at__lt=now) | unlimited, state__in=_HELD)

    def end(batch: QuerySet[Command]) -> int:
        return len(give_up(batch, reason=SILENT, now=now))

    return _in_batches(silent.order_by("reap_at"), end)


def _in_batches(commands: QuerySet[Command], end: Callable[[QuerySet[Command]], int]) -> int:
    total = 0
    while True:
        keys = list(commands.values_list("pk", flat=True)[:BATCH])
        if not keys:
            return total
        with transaction.atomic():
            # Asked again with the conditions: an agent may have come meanwhile.
            ended = end(commands.order_by().filter(pk__in=keys))
        total += ended
        if len(keys) < BATCH or not ended:
            return total


def cancel_unapproved(now: datetime) -> int:
    """Close executions that waited for approval until their deadline."""
    return Execution.objects.filter(
        state=ExecutionState.AWAITING_APPROVAL, deadline_at__lt=now
    ).update(state=ExecutionState.CANCELLED.value, ended_at=now, end_reason=NOT_APPROVED)


def resume_planning(now: datetime) -> int:
    """Ask again for the commands of executions whose planning has lost its task."""
    stuck = Execution.objects.filter(
        state=ExecutionState.PLANNING, created_at__lt=now - PLANNING_PATIENCE
    )
    keys = list(stuck.values_list("pk", flat=True))
    for key in keys:
        # One that is running is not made to run again.
        request("fleet.fanout", key=str(key), coalesce=True, now=now)
    return len(keys)


def end_finished(now: datetime) -> int:
    """End live executions that have nothing open and no wave to come."""
    live = Execution.objects.filter(state=ExecutionState.LIVE, created_at__lt=now - ENDING_PATIENCE)
    keys: list[UUID] = list(live.values_list("pk", flat=True))
    return end_executions(keys, now=now)


def release_waves(now: datetime) -> int:
    """Release waves whose task was lost."""
    return release_due_waves(now=now)


def audit_slots(now: datetime) -> int:  # noqa: ARG001  # a part like the others
    """Count the slots of max_concurrent that are taken, and put wrong counters right."""
    taken = Count("commands", filter=Q(commands__holds_slot=True, commands__state__in=_HELD))
    suspects = Job.everything.annotate(taken=taken).exclude(slots_taken=F("taken"))
    corrected = 0
    for key in list(suspects.values_list("pk", flat=True)):
        with transaction.atomic():
            # Counted again under the lock that every hand-out takes.
            job = Job.everything.select_for_update().get(pk=key)
            held = Command.objects.filter(job=job, holds_slot=True, state__in=_HELD).count()
            corrected += (
                Job.everything.filter(pk=key).exclude(slots_taken=held).update(slots_taken=held)
            )
    return corrected


PARTS: dict[str, Callable[[datetime], int]] = {
    "expired": expire_commands,
    "given up": give_up_silent,
    "not approved": cancel_unapproved,
    "planning": resume_planning,
    "waves": release_waves,
    "ended": end_finished,
    "slots": audit_slots,
}
