"""The freeze page: stop everything, see what that holds, and thaw."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from fleet.admin.base import ReadOnlyAdmin, now_of
from fleet.admin.freeze_page import freeze_page
from fleet.flow.freeze import read_freeze
from fleet.models import Freeze


@admin.register(Freeze)
class FreezeAdmin(ReadOnlyAdmin[Freeze]):
    """One page for the one freeze."""

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the freeze instead of a list of one row."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        now = now_of(request)
        page = freeze_page(read_freeze(now), now=now)
        context = {"title": "Freeze", "page": page, "may_set": self.may_set(request)}
        return self.page(request, "kanade/freeze.html", None, context)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Lead to the one page."""
        return HttpResponseRedirect(reverse(self.url_name("changelist")))

    def may_set(self, request: HttpRequest) -> bool:
        """Whether this person may freeze and thaw."""
        return request.user.has_perm("fleet.set_freeze")
