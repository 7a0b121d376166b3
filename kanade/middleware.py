"""Headers that every answer carries, and the zone in which a viewer sees times."""

import zoneinfo
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

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
