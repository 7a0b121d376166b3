"""Functions of `django.tasks`, as an application writes them."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from django_tasks import TaskContext, task

from scheduler.public import PermanentError

CALLS: list[object] = []


@task()
def add(left: int, right: int = 0) -> int:
    """Add two numbers."""
    CALLS.append((left, right))
    return left + right


@task()
async def add_slowly(left: int, right: int) -> int:
    """Add two numbers in an event loop."""
    await asyncio.sleep(0)
    return left + right


@task(takes_context=True)
def attempts(context: TaskContext, name: str) -> Sequence[object]:
    """Say which attempt this is, of which call, and fail before the third."""
    if context.attempt < 3:
        raise ConnectionError(f"attempt {context.attempt}")
    return [name, context.attempt, context.task_result.id, context.task_result.status]


@task()
def fail(text: str) -> None:
    """Fail."""
    raise ValueError(text)


@task()
def give_up() -> None:
    """Fail for good."""
    raise PermanentError("no such tenant")


@task()
def speak_no_json() -> object:
    """Return what JSON does not know."""
    CALLS.append("spoke")
    return datetime(2026, 1, 1, tzinfo=UTC)


not_a_task = len
