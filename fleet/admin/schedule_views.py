"""The pages about one schedule: how it is, what comes, why it fires or not, who is covered."""

from typing import Any
from urllib.parse import quote_plus

from django.core.exceptions import PermissionDenied
from django.core.paginator import Page
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.urls import reverse

from fleet.admin.base import now_of
from fleet.admin.explain_form import ExplainForm
from fleet.admin.manifest_admin import ManifestAdmin
from fleet.admin.schedule_check import forecast, week_of
from fleet.admin.schedule_page import coverage_parts, rows_of, schedule_page
from fleet.flow.coverage import Done, coverage_of, covered, covered_pcs
from fleet.flow.explaining import explain
from fleet.models import Agent, Schedule
from fleet.rules.manifest import ManifestError, ScheduleManifest
from scheduler.admin.paging import CappedPaginator

FIRES_OF_A_PREVIEW = 20
PCS_ON_A_PAGE = 100


class ScheduleViews(ManifestAdmin[Schedule]):
    """Everything that is told about one schedule."""

    def get_urls(self) -> list[Any]:
        """Return our pages, and the admin's own."""
        return [
            self.own_url("check/", self.check_view, "check"),
            self.own_url("<int:object_id>/overview/", self.overview_view, "overview"),
            self.own_url("<int:object_id>/preview/", self.preview_view, "preview"),
            self.own_url("<int:object_id>/explain/", self.explain_view, "explain"),
            self.own_url("<int:object_id>/coverage/", self.coverage_view, "coverage"),
            self.own_url("<int:object_id>/covered/", self.covered_view, "covered"),
            *super().get_urls(),
        ]

    def links(self, request: HttpRequest, object_id: str | None) -> dict[str, Any]:
        """Return the pages beside the form, and the one that checks it."""
        found = super().links(request, object_id)
        query = f"?id={quote_plus(object_id)}" if object_id else ""
        return {**found, "check_url": reverse(self.url_name("check")) + query}

    def overview_view(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Show the schedule's page."""
        schedule = self.get_visible(request, str(object_id))
        context = {
            "title": schedule.slug,
            "page": schedule_page(schedule, now=now_of(request)),
            "verbs": self.buttons(request, schedule),
            "may_change": self.has_change_permission(request, schedule),
        }
        return self.page(request, "kanade/schedule.html", schedule, context)

    def preview_view(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Show its next fires, and the week to come hour by hour."""
        schedule = self.get_visible(request, str(object_id))
        now = now_of(request)
        manifest = rows_of([schedule], now=now)[schedule.pk].manifest
        context = {
            "title": f"{schedule.slug}: what comes",
            "forecast": forecast(manifest, now=now, count=FIRES_OF_A_PREVIEW) if manifest else None,
            "week": week_of(manifest, now=now) if manifest else [],
        }
        return self.page(request, "kanade/preview.html", schedule, context)

    def explain_view(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Show every gate: now, at a past time or one to come, and for one PC."""
        schedule = self.get_visible(request, str(object_id))
        now = now_of(request)
        form = ExplainForm(request.GET)
        asked = form.cleaned_data if form.is_valid() else {"agent": None, "at": None}
        told = explain(schedule, now=now, agent=asked["agent"], at=asked["at"])
        context = {
            "title": f"Why {schedule.slug} fires or does not",
            "form": form,
            "told": told,
            "first_closed": next((gate for gate in told.gates if not gate.is_open), None),
        }
        return self.page(request, "kanade/explain.html", schedule, context)

    def coverage_view(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Show how many of its PCs did the job: a part of its page that is asked for by itself."""
        schedule = self.get_visible(request, str(object_id))
        try:
            counted = coverage_of(schedule)
        except ManifestError:
            counted = None
        context = {
            "coverage": counted,
            "parts": coverage_parts(counted) if counted else [],
            "schedule": schedule,
        }
        return self.page(request, "kanade/coverage.html", schedule, context)

    def covered_view(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Show its PCs one by one, a page at a time."""
        schedule = self.get_visible(request, str(object_id))
        word = request.GET.get("state", "")
        state = Done(word) if word in {done.value for done in Done} else None
        try:
            agents = covered_pcs(schedule, state=state)
        except ManifestError:
            agents = Agent.objects.none()
        pcs: Page[Agent] = CappedPaginator(agents, PCS_ON_A_PAGE).get_page(request.GET.get("page"))
        context = {
            "title": f"{schedule.slug}: who did it",
            "pcs": pcs,
            "rows": covered(schedule, pcs.object_list),
            "state": word if state else "",
            "states": [done.value for done in Done],
        }
        return self.page(request, "kanade/covered.html", schedule, context)

    def check_view(self, request: HttpRequest) -> HttpResponse:
        """Answer what the form would do if it were saved now; nothing is saved."""
        if not (self.has_add_permission(request) or self.has_change_permission(request)):
            raise PermissionDenied
        if request.method != "POST":
            return JsonResponse({"ok": False, "errors": []}, status=405)
        edited = self.get_visible(request, key) if (key := request.GET.get("id")) else None
        form_class = self.get_form(request, edited, change=edited is not None)
        form = form_class(request.POST, instance=edited)
        form.is_valid()
        errors = [
            {"field": name, "message": str(message)}
            for name, messages in form.errors.items()
            for message in messages
        ]
        manifest = form.manifest
        told = (
            forecast(manifest, now=now_of(request))
            if isinstance(manifest, ScheduleManifest) and not errors
            else None
        )
        html = render_to_string("kanade/check.html", {"forecast": told, "form": form}, request)
        return JsonResponse({"ok": told is not None, "errors": errors, "html": html})
