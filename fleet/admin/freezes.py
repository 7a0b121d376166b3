"""The freeze page: stop everything, see what that holds, and thaw."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from fleet.admin.base import ReadOnlyAdmin, now_of
from fleet.admin.freeze_form import FreezeForm
from fleet.admin.freeze_page import freeze_page
from fleet.admin.verbs import ReasonForm
from fleet.flow.freeze import known_freeze
from fleet.models import Freeze
from fleet.operations.freezing import clear_freeze, set_freeze
from fleet.rules.refusals import Refusal
from scheduler.admin.acting import actor_of

MAY_SET = "fleet.set_freeze"


@admin.register(Freeze)
class FreezeAdmin(ReadOnlyAdmin[Freeze]):
    """One page for the one freeze."""

    def get_urls(self) -> list[Any]:
        """Return the pages of the two acts, and the admin's own."""
        return [
            self.own_url("set/", self.set_view, "set"),
            self.own_url("clear/", self.clear_view, "clear"),
            *super().get_urls(),
        ]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the freeze instead of a list of one row."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        now = now_of(request)
        page = freeze_page(known_freeze(now), now=now)
        verbs = []
        if request.user.has_perm(MAY_SET):
            title = "Freeze the fleet" if page.word == "live" else "Change the freeze"
            verbs.append({"title": title, "url": reverse(self.url_name("set")), "look": "danger"})
            if page.row is not None and page.row.is_set:
                clear = reverse(self.url_name("clear"))
                verbs.append({"title": "Thaw", "url": clear, "look": "primary"})
        context = {"title": "Freeze", "page": page, "verbs": verbs}
        return self.page(request, "kanade/freeze.html", None, context)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Lead to the one page."""
        return self._back()

    def set_view(self, request: HttpRequest) -> HttpResponse:
        """Ask why and how long, and freeze."""
        self._require_right(request)
        form = FreezeForm(request.POST if request.method == "POST" else None, user=request.user)
        if form.is_bound and form.is_valid():
            try:
                set_freeze(form.document(), actor=actor_of(request), now=now_of(request))
            except Refusal as refusal:
                form.show(refusal)
            else:
                messages.success(request, "The freeze is set.")
                return self._back()
        act = {
            "title": "Freeze",
            "look": "danger",
            "text": "No schedule fires, no run by hand starts, no command is handed out, and PCs "
            "start nothing that still waits with them. What runs goes on.",
        }
        return self._asked(request, form, act)

    def clear_view(self, request: HttpRequest) -> HttpResponse:
        """Ask, and thaw."""
        self._require_right(request)
        form = ReasonForm(request.POST if request.method == "POST" else None, user=request.user)
        if form.is_bound and form.is_valid():
            reason = form.cleaned_data["reason"]
            try:
                clear_freeze(actor=actor_of(request), now=now_of(request), reason=reason)
            except Refusal as refusal:
                form.add_error(None, refusal.message)
            else:
                messages.success(request, "The fleet is live.")
                return self._back()
        act = {
            "title": "Thaw",
            "text": "Every schedule is looked at at once, and what was held is handed out.",
        }
        return self._asked(request, form, act)

    def _asked(self, request: HttpRequest, form: Any, act: dict[str, str]) -> HttpResponse:
        back = reverse(self.url_name("changelist"))
        context = {"title": act["title"], "verb": act, "form": form, "back": back}
        return self.page(request, "kanade/verb.html", None, context)

    def _back(self) -> HttpResponse:
        return HttpResponseRedirect(reverse(self.url_name("changelist")))

    def _require_right(self, request: HttpRequest) -> None:
        if not (self.has_view_permission(request) and request.user.has_perm(MAY_SET)):
            raise PermissionDenied
