"""The queue: how it is, and holding back a part of it."""

from collections.abc import Callable
from typing import Any, ClassVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from scheduler import public
from scheduler.api.errors import as_api_error
from scheduler.api.resource import Resource, Rights
from scheduler.api.shapes import QueueBody
from scheduler.rules.health import document


class QueueHealth(Resource):
    """The queue-health report."""

    pagination_class = None
    filter_backends = ()
    rights: ClassVar[Rights] = {
        "retrieve": ("scheduler.view_task", "scheduler.view_runner"),
        "pause": ("scheduler.change_queue",),
        "resume": ("scheduler.change_queue",),
    }

    def translated(self, error: Exception) -> Exception:
        """Return the HTTP error for a refusal of the scheduler."""
        return as_api_error(error)

    @extend_schema(summary="How the queue is", responses=OpenApiTypes.OBJECT)
    def retrieve(self, request: Request) -> Response:
        """Answer counts, what is stuck or late, the runners, and a verdict with its reasons."""
        return Response(document(public.queue_health(self.now)))

    @extend_schema(summary="Pause a queue", request=QueueBody, responses={204: None})
    def pause(self, request: Request) -> Response:
        """Take nothing more from a queue; bodies that run go on. Twice is once."""
        return self._act(public.pause_queue)

    @extend_schema(summary="Resume a queue", request=QueueBody, responses={204: None})
    def resume(self, request: Request) -> Response:
        """Take tasks from a paused queue again. Twice is once."""
        return self._act(public.resume_queue)

    def _act(self, verb: Callable[..., None]) -> Response:
        body: dict[str, Any] = self.read(QueueBody)
        verb(body["queue"], actor=self.actor, reason=body["reason"], now=self.now)
        return Response(status=204)
