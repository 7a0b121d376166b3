"""Is the process alive, is the service ready, and the figures for a collector."""

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe


@require_safe
def healthz(_request: HttpRequest) -> JsonResponse:
    """Answer without touching the database: the process serves requests."""
    return JsonResponse({"status": "ok"})
