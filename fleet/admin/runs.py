"""One run on one PC: its page, its live output, and the download of what it printed."""

from typing import Any, TypeVar
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse

from fleet.admin.base import ReadOnlyAdmin
from fleet.admin.run_page import run_page
from fleet.models import Output, Stream

M = TypeVar("M", bound=Model)

# A downloaded output is data: no browser may take it for a page.
DOWNLOAD_HEADERS = {
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "X-Content-Type-Options": "nosniff",
}


class RunAdmin(ReadOnlyAdmin[M]):
    """Shows the page of a run for whatever row stands for it: its command or its result."""

    def get_urls(self) -> list[Any]:
        """Return our pages in place of the form."""
        return [
            self.own_url("<uuid:object_id>/live/", self.live_view, "live"),
            self.own_url("<uuid:object_id>/<slug:stream>.txt", self.download_view, "download"),
            *super().get_urls(),
        ]

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the run's page."""
        return self._drawn(request, object_id, "kanade/run.html")

    def live_view(self, request: HttpRequest, object_id: UUID) -> HttpResponse:
        """Show the part of the page that changes while it runs."""
        return self._drawn(request, str(object_id), "kanade/run_live.html")

    def _drawn(self, request: HttpRequest, object_id: str, template: str) -> HttpResponse:
        found = self.get_visible(request, object_id)
        page = run_page(UUID(str(found.pk)))
        job = page.job.slug if page.job else "deleted job"
        agent = page.agent.name if page.agent else "deleted PC"
        context: dict[str, Any] = {"title": f"{job} on {agent}", "page": page}
        context["live_url"] = reverse(self.url_name("live"), args=[found.pk])
        return self.page(request, template, found, context)

    def download_view(self, request: HttpRequest, object_id: UUID, stream: str) -> HttpResponse:
        """Give the stored bytes of a stream as they came, as a text file."""
        self.get_visible(request, str(object_id))
        if not request.user.has_perm("fleet.view_output"):
            raise PermissionDenied
        output = Output.objects.filter(command_id=object_id, stream=stream).first()
        if output is None or stream not in Stream.values:
            raise Http404
        response = HttpResponse(whole(output), content_type="text/plain; charset=utf-8")
        response["Content-Disposition"] = f'attachment; filename="{object_id}-{stream}.txt"'
        for name, value in DOWNLOAD_HEADERS.items():
            response[name] = value
        return response


def whole(output: Output) -> bytes:
    """All bytes that are kept, with a line where the PC left the middle out."""
    head, tail = bytes(output.head), bytes(output.tail)
    cut = output.total - len(head) - len(tail)
    mark = f"\n[… {cut} bytes are not kept …]\n".encode() if cut > 0 else b""
    return head + mark + tail
