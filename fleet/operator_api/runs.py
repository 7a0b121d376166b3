"""Answers to whoever starts something: the execution, made once for each Idempotency-Key."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import UserRateThrottle

from fleet.flow.tallies import Standing, tallies_of, word_of
from fleet.models import Execution
from fleet.operations.once import Done, once
from fleet.operator_api.resource import Resource
from fleet.operator_api.shapes.executions import ExecutionOut

HEADER = "Idempotency-Key"
LONGEST_KEY = 200
KEY_PARAMETER = OpenApiParameter(
    HEADER,
    str,
    OpenApiParameter.HEADER,
    description="Sent again within a day, the request is answered with what it made first.",
)


class RunsAllowed(UserRateThrottle):
    """How many runs one person or program may start; it keeps a loop from flooding the fleet."""

    scope = "runs"
    rate = "600/min"


def whole(execution: Execution) -> Any:
    """Return the answer for one execution, its commands counted whatever their number."""
    counted = tallies_of([execution])[execution.pk]
    standing = Standing(word_of(execution, counted), counted)
    return ExecutionOut(execution, context={"standings": {execution.pk: standing}}).data


def answer_run(view: Resource, asked: object, act: Callable[[], Execution]) -> Response:
    """Act once and answer the execution: 201, or 200 where an earlier request had made it."""
    request = view.request
    key = key_of(request)
    if key is None:
        done = Done(act(), repeated=False)
    else:
        owner = request.user.pk or 0
        done = once(key, [request.path, asked], user_id=owner, now=view.now, act=act)
    status = HTTPStatus.OK if done.repeated else HTTPStatus.CREATED
    return Response({**whole(done.execution), "deduplicated": done.repeated}, status=status)


def key_of(request: Request) -> str | None:
    """Return the caller's key for this request; raise ValidationError where it is none."""
    key = request.headers.get(HEADER)
    if key is None:
        return None
    if not (0 < len(key) <= LONGEST_KEY and key.isascii() and key.isprintable()):
        message = f"write 1 to {LONGEST_KEY} printable ASCII characters"
        raise exceptions.ValidationError({HEADER: [message]})
    return key
