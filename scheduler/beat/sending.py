"""The kind `celery.send`: a message to Celery's workers, by the name of their task.

Its input: `task`, `args`, `kwargs`, `options` of the message, `until` when it is not sent any
more, and for an interval `every` seconds, counted from `anchor`.
"""

import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.apps import apps
from django.db import transaction

from scheduler import public
from scheduler.conf import broker
from scheduler.engine.broker import ONCE_MORE, sender
from scheduler.models import Task
from scheduler.public import Fire, PermanentError, Retry
from scheduler.registry import REGISTRY, Kind
from scheduler.rules.beat import next_of
from scheduler.rules.states import TaskState

KIND = "celery.send"
# A broker that is away comes back; until then the message waits here.
RETRY = Retry(times=50, min=5, max=300)
BEAT = "django_celery_beat"
OPTIONS = frozenset({"queue", "exchange", "routing_key", "priority", "headers", "expires"})


def body(fire: Fire) -> object:
    """Send the message, unless its time is over or beat sends it."""
    message = _checked(fire.input)
    until = message.get("until")
    if until is not None and fire.now >= datetime.fromisoformat(until):
        public.cancel(fire.task_id, reason=f"expired at {until}", now=fire.now)
        return {"sent": None, "why": f"expired at {until}"}
    if _beat_sends(fire.key):
        _go_on(fire, message)
        return {"sent": None, "why": f"the PeriodicTask {fire.key} is enabled, so beat sends it"}
    sent = _send(message, _message_id(fire), until)
    _go_on(fire, message)
    return {"sent": sent}


def on_failed(fire: Fire, count: int, error: str) -> None:  # noqa: ARG001  # a hook's arguments
    """Let an interval go on after a message that could not be sent at all."""
    message = fire.input
    failed = Task.objects.filter(pk=fire.task_id, state=TaskState.FAILED.value)
    if isinstance(message, dict) and message.get("every") and failed.exists():
        _ask_next(fire, message, after=fire.now)


def register() -> None:
    """Let runners know the kind."""
    REGISTRY.add(Kind(KIND, body, on_failed=on_failed))


def _checked(value: object) -> dict[str, Any]:
    if not isinstance(value, dict) or not value.get("task") or not isinstance(value["task"], str):
        raise PermanentError('the input names no task; write {"task": "app.tasks.name"}')
    for name in ("options", "kwargs"):
        if not isinstance(value.get(name, {}), dict):
            raise PermanentError(f"the {name} are names with values, like {{}}")
    if not isinstance(value.get("args", []), list):
        raise PermanentError("the args are a list, like []")
    if unknown := value.get("options", {}).keys() - OPTIONS:
        raise PermanentError(f"unknown options of a message: {', '.join(sorted(unknown))}")
    if value.get("until") is not None and not _is_time(value["until"]):
        raise PermanentError("until is a time with a zone, like 2026-03-01T12:00:00+00:00")
    return value


def _is_time(value: object) -> bool:
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def _beat_sends(name: str | None) -> bool:
    """Whether the row that this task was made of is enabled again: then the two would both fire."""
    if name is None or not apps.is_installed(BEAT):
        return False
    rows = apps.get_model(BEAT, "PeriodicTask")._default_manager  # noqa: SLF001  # the public way
    return bool(rows.filter(name=name, enabled=True).exists())


def _message_id(fire: Fire) -> str:
    """Return the same id for each try of one occurrence of a cron, so that receivers can tell."""
    moment = fire.occurrence_at or fire.due_at
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"kanade/{fire.task_id}/{moment.isoformat()}"))


def _send(message: Mapping[str, Any], message_id: str, until: str | None) -> str:
    options = dict(message.get("options", {}))
    if until is not None:
        options["expires"] = datetime.fromisoformat(until)
    sender(broker().url).send_task(
        message["task"],
        args=message.get("args", []),
        kwargs=message.get("kwargs", {}),
        task_id=message_id,
        **ONCE_MORE,
        **options,
    )
    return message_id


def _go_on(fire: Fire, message: Mapping[str, Any]) -> None:
    """Ask for the next run of an interval, unless somebody asked for something else meanwhile."""
    if not message.get("every"):
        return
    with transaction.atomic():
        untouched = Task.objects.filter(
            pk=fire.task_id,
            state=TaskState.RUNNING.value,
            replaced=False,
            rerun=False,
            cancelling=False,
        )
        if untouched.select_for_update().exists():
            _ask_next(fire, message, after=fire.now)


def _ask_next(fire: Fire, message: Mapping[str, Any], *, after: datetime) -> None:
    anchor, every = datetime.fromisoformat(message["anchor"]), timedelta(seconds=message["every"])
    public.request(
        KIND,
        key=fire.key,
        input=dict(message),
        at=next_of(anchor, every, after),
        retry=RETRY,
        now=after,
    )
