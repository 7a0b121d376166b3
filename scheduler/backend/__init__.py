"""The `django.tasks` interface: decorated functions run as tasks of one kind.

`TASKS = {"default": {"BACKEND": "scheduler.backend.SchedulerBackend"}}`. A result is read from the
task and its runs, so it is as durable as they are, and goes when they are pruned.
"""

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from django.core import checks
from django.utils import timezone
from django.utils.crypto import get_random_string
from django_tasks import TaskContext, TaskResult, TaskResultStatus, signals
from django_tasks.backends.base import BaseTaskBackend
from django_tasks.base import Task, TaskError
from django_tasks.exceptions import InvalidTaskError
from django_tasks.utils import get_exception_traceback, get_module_path, normalize_json
from typing_extensions import ParamSpec

from scheduler.backend.results import KIND, make_result, result_of, result_with_id
from scheduler.models import Task as Row
from scheduler.public import Fire, OrderError, PermanentError, Retry, request
from scheduler.registry import REGISTRY, Kind
from scheduler.rules.payload import require_storable

T = TypeVar("T")
P = ParamSpec("P")


class SchedulerBackend(BaseTaskBackend):
    """Functions become tasks of kind `django.task`; runners execute them.

    `OPTIONS: {"retry": {"times": 3, "min": 60, "max": 3600}}` tries failed ones again.
    """

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def enqueue(self, task: Task[P, T], args: Any, kwargs: Any) -> TaskResult[T]:
        """Store a call with the caller's transaction; nothing runs if that is rolled back.

        Raises InvalidTaskError for a bad task, TypeError or ValueError for arguments that JSON
        cannot carry unchanged.
        """
        self.validate_task(task)
        now = timezone.now()
        called = {
            "task": task.module_path,
            "args": _json(args, "the arguments"),
            "kwargs": _json(kwargs, "the keyword arguments"),
            "backend": self.alias,
            "run_after": task.run_after.isoformat() if task.run_after else None,
        }
        try:
            task_id = request(
                KIND,
                # Says in lists which function it is; the rest makes it a task of its own.
                key=f"{task.module_path} {get_random_string(12)}",
                input=called,
                at=task.run_after,
                priority=task.priority,
                queue=task.queue_name,
                retry=self.retry,
                now=now,
            )
        except OrderError as error:
            raise InvalidTaskError(str(error)) from error
        result = cast(
            "TaskResult[T]",
            make_result(task, Row(pk=task_id, input=called, created_at=now), []),
        )
        signals.task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> TaskResult[Any]:
        """Return what is known of a call; raise TaskResultDoesNotExist, also once it is pruned."""
        return result_with_id(result_id)

    @property
    def retry(self) -> Retry | None:
        """The retry policy of this backend's tasks, from its OPTIONS."""
        policy = self.options.get("retry")
        return None if policy is None else Retry(**policy)

    def check(self, **kwargs: Any) -> Iterable[checks.CheckMessage]:
        """Say what is wrong with the settings of this backend."""
        yield from super().check(**kwargs)
        for unknown in sorted(set(self.options) - {"retry"}):
            yield checks.Error(
                f"TASKS[{self.alias!r}] has an unknown option {unknown!r}; the one option is retry",
                id="scheduler.E001",
            )
        try:
            _ = self.retry
        except (TypeError, ValueError) as error:
            yield checks.Error(
                f"TASKS[{self.alias!r}] has a bad retry: {error}",
                hint='Write it as {"times": 3, "min": 60, "max": 3600}, in seconds.',
                id="scheduler.E002",
            )


def body(fire: Fire) -> object:
    """Run the function that a task names."""
    row = Row.objects.select_related("runner").get(pk=fire.task_id)
    with _Told(result_of(row)) as told:
        result, task = told.result, told.result.task
        context = [TaskContext(task_result=result)] if task.takes_context else []
        told.returned = _json(
            task.call(*context, *result.args, **result.kwargs), "the return value", permanent=True
        )
    return told.returned


def register() -> None:
    """Let runners know the kind, whichever functions there are."""
    REGISTRY.add(Kind(KIND, body))


class _Told:
    """Tells the listeners of `django.tasks` that a function begins, and how it ended."""

    def __init__(self, result: TaskResult[Any]) -> None:
        self.result = result
        self.returned: object = None

    def __enter__(self) -> Self:
        signals.task_started.send(SchedulerBackend, task_result=self.result)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # A result is frozen; the package's own backends set what they learn the same way.
        learnt: dict[str, object] = {"finished_at": timezone.now()}
        if error is None:
            learnt |= {"status": TaskResultStatus.SUCCESSFUL, "_return_value": self.returned}
        else:
            learnt["status"] = TaskResultStatus.FAILED
            path, shown = get_module_path(type(error)), get_exception_traceback(error)
            self.result.errors.append(TaskError(exception_class_path=path, traceback=shown))
        for name, value in learnt.items():
            object.__setattr__(self.result, name, value)
        signals.task_finished.send(SchedulerBackend, task_result=self.result)


def _json(value: object, what: str, *, permanent: bool = False) -> Any:
    """Return a value as JSON gives it back; a bad one of a body's is a failure for good."""
    try:
        _refuse_keys(value, what)
        return require_storable(normalize_json(value), what)
    except (TypeError, ValueError) as error:
        if permanent:
            # The function has had its effect; calling it again would only repeat that.
            raise PermanentError(f"{what}: {error}") from error
        raise


def _refuse_keys(value: object, what: str) -> None:
    """Refuse keys that JSON would turn into texts: they would not come back as they were."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"{what}: a key is a text in JSON, not {key!r:.40}")
            _refuse_keys(item, what)
    elif isinstance(value, list | tuple):
        for item in value:
            _refuse_keys(item, what)
