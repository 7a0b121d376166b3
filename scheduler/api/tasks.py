"""Tasks: read with their runs, requested, changed, and acted on."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, ClassVar

from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import exceptions
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from scheduler import public
from scheduler.api.errors import as_api_error
from scheduler.api.filters import RunFilters, TaskFilters
from scheduler.api.resource import Resource, Rights
from scheduler.api.shapes import (
    ReasonBody,
    RunOut,
    TaskBody,
    TaskChanges,
    TaskDetailOut,
    TaskOut,
)
from scheduler.models import Dependency, Run, Task

_VIEW = ("scheduler.view_task",)
_CHANGE = (*_VIEW, "scheduler.change_task")
MOST_EDGES = 100
# What the audit says of a request.
TOLD = ("kind", "key", "cron", "queue")


class Tasks(ListModelMixin, Resource):
    """The scheduler's tasks."""

    # What a page of tasks does not show may be large.
    queryset = Task.objects.defer("input", "next_input", "result", "last_error")
    serializer_class = TaskOut
    filterset_class = TaskFilters
    lookup_url_kwarg = "task_id"
    lookup_value_converter = "int"
    rights: ClassVar[Rights] = {
        "list": _VIEW,
        "retrieve": _VIEW,
        "create": (*_VIEW, "scheduler.add_task"),
        "partial_update": _CHANGE,
        "cancel": _CHANGE,
        "run_now": _CHANGE,
        "retry": _CHANGE,
        "release": _CHANGE,
        "reset_cron": _CHANGE,
        "runs": (*_VIEW, "scheduler.view_run"),
    }

    def get_serializer_context(self) -> dict[str, Any]:
        """Tell the shapes what time it is."""
        return {**super().get_serializer_context(), "now": self.now}

    def translated(self, error: Exception) -> Exception:
        """Return the HTTP error for a refusal of the scheduler."""
        return as_api_error(error)

    @extend_schema(summary="Read a task", responses=TaskDetailOut)
    def retrieve(self, request: Request, task_id: int) -> Response:
        """Answer one task with what it waits for and when it recurs."""
        return Response(self._detail(task_id))

    @extend_schema(summary="Request a task", request=TaskBody, responses={201: TaskDetailOut})
    def create(self, request: Request) -> Response:
        """Put a task into the queue: 201, or 200 where a live task of its key was updated."""
        asked = self.read(TaskBody)
        with transaction.atomic():
            task_id = public.request(**asked, now=self.now)
            self._audit_request(task_id, asked)
            body = self._detail(task_id)
        made = Task.objects.filter(pk=task_id, created_at=self.now).exists()
        return Response(body, status=HTTPStatus.CREATED if made else HTTPStatus.OK)

    @extend_schema(summary="Change a task", request=TaskChanges, responses=TaskDetailOut)
    def partial_update(self, request: Request, task_id: int) -> Response:
        """Change its cron, retry policy or due time; all of what is sent, or nothing."""
        changes = self.read(TaskChanges)
        by = self._by(changes.pop("reason"))
        if not changes:
            raise exceptions.ValidationError("send cron, retry or due")
        verbs: dict[str, Callable[..., None]] = {
            "cron": public.set_cron,
            "retry": public.set_retry,
            "due": public.set_due,
        }
        with transaction.atomic():
            for name, value in changes.items():
                verbs[name](task_id, value, **by)
        return Response(self._detail(task_id))

    @extend_schema(summary="Cancel a task", request=ReasonBody, responses=TaskDetailOut)
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, task_id: int) -> Response:
        """Never run it again; a body that runs ends first. 409 where it is over."""
        return self._act(public.cancel, task_id)

    @extend_schema(summary="Run a task now", request=ReasonBody, responses=TaskDetailOut)
    @action(detail=True, methods=["post"], url_path="run-now")
    def run_now(self, request: Request, task_id: int) -> Response:
        """Run it as soon as a runner is free; a recurrence stays. 409 where it cannot."""
        return self._act(public.run_now, task_id)

    @extend_schema(summary="Start a task again", request=ReasonBody, responses=TaskDetailOut)
    @action(detail=True, methods=["post"])
    def retry(self, request: Request, task_id: int) -> Response:
        """Start a task that is over once more. 409 where it is live, or its key is taken."""
        return self._act(public.retry_task, task_id)

    @extend_schema(
        summary="Release a quarantined task", request=ReasonBody, responses=TaskDetailOut
    )
    @action(detail=True, methods=["post"])
    def release(self, request: Request, task_id: int) -> Response:
        """Let it run again. 409 where it is not quarantined."""
        return self._act(public.release, task_id)

    @extend_schema(summary="Bring back code's cron", request=ReasonBody, responses=TaskDetailOut)
    @action(detail=True, methods=["post"], url_path="reset-cron")
    def reset_cron(self, request: Request, task_id: int) -> Response:
        """Forget what staff typed. 409 where the task does not recur."""
        return self._act(lambda pk, **by: public.set_cron(pk, None, **by), task_id)

    @extend_schema(summary="The runs of a task, newest first", responses=RunOut(many=True))
    @action(detail=True, filterset_class=RunFilters)
    def runs(self, request: Request, task_id: int) -> Response:
        """Answer a page of its history; also of a task that was pruned."""
        rows = Run.objects.filter(task_id=task_id).defer("input", "result")
        # Along the index of (task, token), which grows with each run.
        self.ordering = "-lease_token"
        page = self.paginate_queryset(self.narrowed(rows, RunFilters)) or []
        return self.get_paginated_response(RunOut(page, many=True).data)

    def _act(self, verb: Callable[..., None], task_id: int) -> Response:
        verb(task_id, **self._by(self.read(ReasonBody)["reason"]))
        return Response(self._detail(task_id))

    def _by(self, reason: str) -> dict[str, Any]:
        return {"actor": self.actor, "reason": reason, "now": self.now}

    def _audit_request(self, task_id: int, asked: Mapping[str, object]) -> None:
        told = {name: asked[name] for name in TOLD if name in asked}
        public.record_act(
            self.actor, "request", object_kind="task", object_id=task_id, after=told, now=self.now
        )

    def _detail(self, task_id: int) -> Any:
        task = Task.objects.filter(pk=task_id).first()
        if task is None:
            raise Http404
        context = {
            "now": self.now,
            "depends_on": _ids(Dependency.objects.filter(task=task), "dependency_id"),
            "needed_by": _ids(Dependency.objects.filter(dependency=task), "task_id"),
        }
        return TaskDetailOut(task, context=context).data


def _ids(edges: QuerySet[Dependency], column: str) -> list[int]:
    return list(edges.order_by(column).values_list(column, flat=True)[:MOST_EDGES])
