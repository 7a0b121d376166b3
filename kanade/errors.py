"""What the site answers when no view did: problem details under `/api/`, pages elsewhere."""

import logging

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views import defaults
from rest_framework import exceptions

from scheduler.api.problems import MEDIA_TYPE, problem

logger = logging.getLogger(__name__)
API = "/api/"


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 400: a request that Django itself refuses, such as one with a foreign host name."""
    if not request.path.startswith(API):
        return defaults.bad_request(request, exception)
    return _problem(exceptions.ParseError("The request is not acceptable."))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 403."""
    if not request.path.startswith(API):
        return defaults.permission_denied(request, exception)
    return _problem(exceptions.PermissionDenied())


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 404: no view has this address."""
    if not request.path.startswith(API):
        return defaults.page_not_found(request, exception)
    return _problem(exceptions.NotFound())


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer 500 without internals; the id in the answer is in the log beside the traceback."""
    if not request.path.startswith(API):
        return defaults.server_error(request)
    answer = problem(exceptions.APIException("The server failed; quote the id to its operator."))
    logger.error("request failed", extra={"path": request.path, "problem": answer["id"]})
    return JsonResponse(answer, status=500, content_type=MEDIA_TYPE)


def _problem(error: exceptions.APIException) -> JsonResponse:
    return JsonResponse(problem(error), status=error.status_code, content_type=MEDIA_TYPE)
