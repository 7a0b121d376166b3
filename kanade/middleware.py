"""Headers of every answer, which bodies are taken, and the zone in which a viewer sees times."""

import zoneinfo
from collections.abc import Callable
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import resolve
from django.utils import timezone
from rest_framework.exceptions import APIException

from scheduler.api.problems import MEDIA_TYPE, problem

AGENTS = "/api/agent/"
ZONE_COOKIE = "kanade_zone"
NO_FEATURES = "camera=(), geolocation=(), microphone=(), payment=(), usb=()"

Handler = Callable[[HttpRequest], HttpResponse]


class SafeHeaders:
    """Nothing is stored by caches on the way, and no page asks for a device."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Cache-Control", "no-store")
        response.headers["Permissions-Policy"] = NO_FEATURES
        return response


class PlainBodies:
    """A body is sent as it is and says how long it is.

    Nothing is ever unpacked, so that a small request cannot become a large one; and of a body
    without a length the frameworks read nothing, which would look like "no body".
    """

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        encoding = request.headers.get("Content-Encoding", "").strip().lower()
        if encoding not in {"", "identity"}:
            return _refused(NotPlain())
        if request.headers.get("Transfer-Encoding") and not request.headers.get("Content-Length"):
            return _refused(NoLength())
        return self.get_response(request)


class NotPlain(APIException):
    """The body is compressed."""

    status_code = HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    default_detail = "Send the body as it is, without Content-Encoding."


class NoLength(APIException):
    """The body comes in chunks."""

    status_code = HTTPStatus.LENGTH_REQUIRED
    default_detail = "Send the body with its Content-Length."


def _refused(error: APIException) -> HttpResponse:
    return JsonResponse(problem(error), status=error.status_code, content_type=MEDIA_TYPE)


class AgentsPath:
    """Requests of agents go straight to their view: no session, no cookie, no user on the way."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path_info.startswith(AGENTS):
            return self.get_response(request)
        # What CommonMiddleware asks of every other request: the host is one of ours.
        request.get_host()
        found = resolve(request.path_info)
        answer: HttpResponse = found.func(request, *found.args, **found.kwargs)
        return answer


class ViewerZone:
    """Show times in the zone that the viewer's browser reported; else in TIME_ZONE."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response
        self.known = zoneinfo.available_timezones()

    def __call__(self, request: HttpRequest) -> HttpResponse:
        name = request.COOKIES.get(ZONE_COOKIE, "")
        if name not in self.known:
            return self.get_response(request)
        with timezone.override(zoneinfo.ZoneInfo(name)):
            return self.get_response(request)
