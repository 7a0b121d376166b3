"""What is known of a call of a `django.tasks` function, read from its task and its runs."""

import re
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from django.apps import apps
from django.core.exceptions import SuspiciousOperation
from django.utils.module_loading import import_string
from django_tasks import TaskResult, TaskResultStatus
from django_tasks.base import Task, TaskError
from django_tasks.exceptions import TaskResultDoesNotExist
from django_tasks.utils import get_module_path

from scheduler.models import Run
from scheduler.models import Task as Row
from scheduler.rules.fire import PermanentError
from scheduler.rules.states import Outcome, TaskState

KIND: Final = "django.task"
LARGEST_ID = 2**63 - 1
# As the engine writes an error: its class, then what it says.
_CLASS_OF_ERROR = re.compile(r"^([\w.]+)(?::|$)", re.MULTILINE)
_STATUS: Final = {
    TaskState.PENDING.value: TaskResultStatus.READY,
    TaskState.RUNNING.value: TaskResultStatus.RUNNING,
    TaskState.FINISHED.value: TaskResultStatus.SUCCESSFUL,
    TaskState.FAILED.value: TaskResultStatus.FAILED,
    TaskState.CANCELLED.value: TaskResultStatus.FAILED,
    # It does not start until a person releases it.
    TaskState.QUARANTINED.value: TaskResultStatus.FAILED,
}

_HELD_BACK: Final = {TaskState.CANCELLED.value, TaskState.QUARANTINED.value}
_OF_RUN = ("task_id", "outcome", "error", "trace", "runner_name", "started_at")


class RunnerLostError(Exception):
    """The process that ran the function was gone before it ended."""


class NotRunError(Exception):
    """The function will not run: cancelled, quarantined, or too late."""


def result_with_id(result_id: str) -> TaskResult[Any]:
    """Return what is known of a call; raise TaskResultDoesNotExist, also once it is pruned."""
    row = None
    if result_id.isascii() and result_id.isdigit() and int(result_id) <= LARGEST_ID:
        row = Row.objects.select_related("runner").filter(pk=int(result_id), kind=KIND).first()
    if row is None:
        raise TaskResultDoesNotExist(result_id)
    return result_of(row)


def result_of(row: Row) -> TaskResult[Any]:
    """Return what the row of a task and its runs say of the call.

    Raises PermanentError, ImportError or SuspiciousOperation if there is no such function.
    """
    called = row.input
    if not isinstance(called, dict) or not isinstance(called.get("task"), str):
        raise PermanentError(f"task {row.pk} names no function; its input needs a task")
    _refuse_strange_module(called["task"])
    task = import_string(called["task"])
    if not isinstance(task, Task):
        raise SuspiciousOperation(f"task {row.pk} names {called['task']}, which is not a task")
    after = called.get("run_after")
    asked = task.using(
        priority=row.priority,
        queue_name=row.queue,
        run_after=datetime.fromisoformat(after) if after else None,
        backend=called.get("backend"),
    )
    runs = Run.objects.filter(task_id=row.pk).order_by("pk").only(*_OF_RUN)
    return make_result(asked, row, list(runs))


def _refuse_strange_module(path: str) -> None:
    """Refuse what only an import would bring in, unless an installed app has it.

    An import runs code, and whoever may write a task's input would choose which.
    """
    if path.rpartition(".")[0] in sys.modules or apps.get_containing_app_config(path) is not None:
        return
    raise PermanentError(
        f"{path!r:.300} is in no installed app; "
        "put the function into a module of an app in INSTALLED_APPS"
    )


def make_result(task: Task[Any, Any], row: Row, runs: Sequence[Run]) -> TaskResult[Any]:
    """Put together what is known: the function, its task, and its runs from the first on."""
    called: dict[str, Any] = row.input or {}
    began = [run for run in runs if run.started_at is not None]
    workers = [run.runner_name for run in began]
    if row.state == TaskState.RUNNING.value:
        workers.append(row.runner.name if row.runner else "")
    first = began[0].started_at if began else row.started_at
    result: TaskResult[Any] = TaskResult(
        task=task,
        id=str(row.pk),
        status=_STATUS[row.state],
        enqueued_at=row.created_at,
        started_at=first,
        finished_at=row.ended_at,
        last_attempted_at=row.started_at,
        args=called.get("args", []),
        kwargs=called.get("kwargs", {}),
        backend=task.backend,
        errors=list(_errors(row, runs)),
        worker_ids=workers,
    )
    if row.state == TaskState.FINISHED.value:
        object.__setattr__(result, "_return_value", row.result)
    return result


def _errors(row: Row, runs: Sequence[Run]) -> Iterator[TaskError]:
    for run in runs:
        if run.outcome == Outcome.CRASHED.value:
            yield _error(RunnerLostError, run.error)
        elif run.started_at is None:
            yield _error(NotRunError, run.error or run.outcome)
        elif run.outcome != Outcome.SUCCEEDED.value:
            found = _CLASS_OF_ERROR.search(run.error)
            path = found[1] if found else "Exception"
            path = path if "." in path else f"builtins.{path}"
            yield TaskError(exception_class_path=path, traceback=run.trace or run.error)
    if row.state in _HELD_BACK:
        yield _error(NotRunError, row.reason or row.state)


def _error(kind: type[Exception], text: str) -> TaskError:
    return TaskError(exception_class_path=get_module_path(kind), traceback=text)
