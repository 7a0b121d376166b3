"""From a row to the facts that the rules ask for."""

from scheduler.models import Task
from scheduler.rules.interruptions import Interrupted
from scheduler.rules.misfire import Misfire
from scheduler.rules.outcomes import Row
from scheduler.rules.requests import Existing
from scheduler.rules.standing import Standing
from scheduler.rules.states import Reason, TaskState


def existing_of(task: Task) -> Existing:
    """Return the facts about a live row that the rules ask for."""
    return Existing(
        state=TaskState(task.state),
        reason=Reason(task.reason),
        recurrence=task.recurrence,
        cron_override=task.cron_override,
        due_at=task.due_at,
        not_before=task.not_before,
        occurrence_at=task.occurrence_at,
        extra=task.extra,
        retry_count=task.retry_count,
        rerun=task.rerun,
        rerun_not_before=task.rerun_not_before,
        held=task.hook_run is not None,
    )


def row_of(task: Task) -> Row:
    """Return the facts about a running task that its end is decided by."""
    return Row(
        recurrence=task.recurrence,
        misfire=Misfire(task.misfire),
        occurrence_at=task.occurrence_at,
        extra=task.extra,
        retry_count=task.retry_count,
        replaced=task.replaced,
        next_input=task.next_input,
        rerun=task.rerun,
        rerun_not_before=task.rerun_not_before,
        dropped=task.dropped,
        cancelling=task.cancelling,
        waits_for=task.waits_for,
    )


def interrupted_of(task: Task) -> Interrupted:
    """Return the facts about a running task whose claim ends without its body ending."""
    return Interrupted(
        due_at=task.due_at,
        replaced=task.replaced,
        next_input=task.next_input,
        rerun=task.rerun,
        rerun_not_before=task.rerun_not_before,
        cancelling=task.cancelling,
        waits_for=task.waits_for,
    )


def standing_of(task: Task) -> Standing:
    """Return the facts about a task that its words are made of."""
    return Standing(
        state=TaskState(task.state),
        reason=task.reason,
        due_at=task.due_at,
        waits_for=task.waits_for,
        retry_count=task.retry_count,
        retry_times=task.retry_times,
        started_at=task.started_at,
        ended_at=task.ended_at,
        body_started=task.body_started,
        suspect=task.suspect,
        cancelling=task.cancelling,
        rerun=task.rerun,
        hook_to_run=task.hook_run is not None,
    )
