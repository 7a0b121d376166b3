"""The door to the scheduler: everything other applications may use of it.

`now` may be given by a caller that has read the clock already; else it is read here.
"""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Unpack

from django.utils import timezone

from scheduler.engine import acts, wakeup
from scheduler.engine.acts import NoSuchTaskError
from scheduler.engine.audit import record_act
from scheduler.engine.enqueue import ContentionError, enqueue
from scheduler.engine.health import queue_health
from scheduler.registry import (
    REGISTRY,
    Declared,
    DuplicateKindError,
    Handler,
    Hook,
    Kind,
    Pruner,
    UnknownKindError,
)
from scheduler.rules.actors import SYSTEM, Act, Actor, By
from scheduler.rules.acts import TaskStateError
from scheduler.rules.builder import TaskBuilder
from scheduler.rules.fire import NOTHING, Fire, Nothing, PermanentError, Retry
from scheduler.rules.graph import DependencyError
from scheduler.rules.health import QueueHealth
from scheduler.rules.misfire import Misfire
from scheduler.rules.orders import OrderError, make_order
from scheduler.rules.payload import PayloadError

__all__ = [
    "NOTHING",
    "Actor",
    "ContentionError",
    "DependencyError",
    "DuplicateKindError",
    "Fire",
    "NoSuchTaskError",
    "Nothing",
    "OrderError",
    "PayloadError",
    "PermanentError",
    "QueueHealth",
    "Retry",
    "TaskBuilder", "TaskStateError",
    "UnknownKindError",
    "cancel",
    "kind",
    "limit_queue",
    "pause_queue",
    "pruner",
    "queue_health",
    "record_act",
    "recurring",
    "release",
    "request",
    "resume_queue",
    "retry_task",
    "run_now",
    "set_cron",
    "set_due",
    "set_retry",
    "task",
    "wake",
]  # fmt: skip


def kind(
    name: str,
    *,
    queue: str | None = None,
    limit: int | None = None,
    on_attempt_failed: Hook | None = None,
    on_failed: Hook | None = None,
) -> Callable[[Handler], Handler]:
    """Register the decorated function as the body of a kind of task.

    It is called with a Fire, at least once for each piece of work. It answers JSON, None, or
    NOTHING if there was nothing to do (no row in the history). Any exception is a failure that may
    be retried, PermanentError one that may not. At most `limit` bodies of the kind run at once in
    one runner. The hooks are called with the fire, the retries made before and the error, after
    the failure is committed, at least once; they never undo it.
    """

    def register(handler: Handler) -> Handler:
        REGISTRY.add(Kind(name, handler, queue, limit, on_attempt_failed, on_failed))
        return handler

    return register


def request(
    kind: str,
    *,
    key: str | None = None,
    input: object = None,
    at: datetime | None = None,
    after: timedelta | float | None = None,
    cron: str | None = None,
    tz: str = "UTC",
    day_rule: str = "or",
    retry: Retry | None = None,
    depends_on: Iterable[int] = (),
    require_success: bool = False,
    run_on_startup: bool = False,
    misfire: str = Misfire.ONCE,
    priority: int = 0,
    queue: str | None = None,
    coalesce: bool = False,
    now: datetime | None = None,
) -> int:
    """Ask for a run; return the task's id. The task is stored with the caller's transaction.

    With a key there is one live task: a request for it overwrites what is pending, and makes one
    that is running run once more when it ends (not with `coalesce`). `after` is a timedelta or
    seconds. Raises OrderError, CronError, ZoneError, DependencyError, PayloadError,
    UnknownKindError: all ValueErrors.
    """
    moment = now or timezone.now()
    registered = REGISTRY.get(kind)
    order = make_order(
        kind,
        now=moment,
        key=key,
        input=input,
        at=at,
        after=after,
        cron=cron,
        tz=tz,
        day_rule=day_rule,
        retry=retry,
        depends_on=depends_on,
        require_success=require_success,
        run_on_startup=run_on_startup,
        misfire=misfire,
        priority=priority,
        queue=queue or registered.queue or "default",
        coalesce=coalesce,
    )
    return enqueue(order, now=moment)


def task(kind: str, input: object = None) -> TaskBuilder:
    """Start to describe a task; a terminal such as `.now()` requests it, once."""
    return TaskBuilder(request, kind, input)


def recurring(
    kind: str,
    *,
    key: str,
    cron: str,
    tz: str = "UTC",
    misfire: str = Misfire.ONCE,
    queue: str | None = None,
    priority: int = 0,
    run_on_startup: bool = False,
) -> None:
    """Declare a recurring task, at import; every start of a runner registers it.

    A cron that staff typed for it stays in force.
    """
    options: dict[str, object] = {
        "cron": cron,
        "tz": tz,
        "misfire": misfire,
        "queue": queue,
        "priority": priority,
        "run_on_startup": run_on_startup,
    }
    REGISTRY.declare(Declared(kind, key, MappingProxyType(options)))


def pruner(name: str) -> Callable[[Pruner], Pruner]:
    """Register the decorated function as a part of `manage.py prune`.

    It is given the time, deletes what is older than its retention, and says how many rows that was.
    """

    def register(part: Pruner) -> Pruner:
        REGISTRY.pruners[name] = part
        return part

    return register


def cancel(task_id: int, **by: Unpack[By]) -> None:
    """Never run a live task again; a body that runs now ends first. Raises TaskStateError."""
    acts.cancel(task_id, _act(by))


def run_now(task_id: int, **by: Unpack[By]) -> None:
    """Run a live task as soon as possible; a recurrence stays. Raises TaskStateError."""
    acts.run_now(task_id, _act(by))


def retry_task(task_id: int, **by: Unpack[By]) -> None:
    """Start a task that is over once more. Raises TaskStateError, also if its key is taken."""
    acts.retry_task(task_id, _act(by))


def release(task_id: int, **by: Unpack[By]) -> None:
    """Let a quarantined task run again. Raises TaskStateError."""
    acts.release(task_id, _act(by))


def set_cron(task_id: int, text: str | None, **by: Unpack[By]) -> None:
    """Override the cron of a recurring task; None brings back the one that code registered."""
    acts.set_cron(task_id, text, _act(by))


def set_retry(task_id: int, retry: Retry | None, **by: Unpack[By]) -> None:
    """Replace the retry policy of a live task. Raises TaskStateError."""
    acts.set_retry(task_id, retry, _act(by))


def set_due(task_id: int, at: datetime, **by: Unpack[By]) -> None:
    """Move the next run of a pending task. Raises TaskStateError."""
    acts.set_due(task_id, at, _act(by))


def pause_queue(name: str, **by: Unpack[By]) -> None:
    """Take nothing more from a queue; bodies that run go on."""
    acts.change_queue(name, "pause", _act(by), paused=True)


def resume_queue(name: str, **by: Unpack[By]) -> None:
    """Take tasks from a paused queue again."""
    acts.change_queue(name, "resume", _act(by), paused=False)


def limit_queue(name: str, most_running: int | None, **by: Unpack[By]) -> None:
    """Run at most `most_running` bodies of a queue at once on all runners; None = any number."""
    acts.change_queue(name, "limit", _act(by), most_running=most_running or 0)


def _act(by: By) -> Act:
    return Act(by.get("actor", SYSTEM), by.get("reason", ""), by.get("now") or timezone.now())


def wake() -> None:
    """Hint to the runners, when the transaction commits, that work is due now."""
    wakeup.announce_now()
