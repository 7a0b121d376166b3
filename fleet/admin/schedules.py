"""Schedules: when and where jobs run."""

from typing import Any, ClassVar
from urllib.parse import quote_plus

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.urls import reverse

from fleet.admin import schedule_cells, schedule_form, schedule_verbs
from fleet.admin.base import WordsFilter, now_of
from fleet.admin.manifest_admin import ManifestAdmin, deletion
from fleet.admin.schedule_check import forecast, week_of
from fleet.admin.schedule_page import rows_of, schedule_page
from fleet.models import Schedule
from fleet.operations.schedules import delete_schedule, save_schedule
from fleet.rules.manifest import ScheduleManifest

DELETED = "It fires no more. Its executions and their results stay as history."
FIRES_OF_A_PREVIEW = 20


class ScheduleList(ChangeList):
    """A page of schedules with what was decided about each, read together."""

    def get_results(self, request: HttpRequest) -> None:
        """Read the page, the evaluations in force, and the counts of the last day."""
        super().get_results(request)
        found = list(self.result_list)
        rows = rows_of(found, now=now_of(request))
        for schedule in found:
            schedule.__dict__[schedule_cells.ROW] = rows[schedule.pk]
        self.result_list = found

    def url_for_result(self, result: Any) -> str:
        """Lead to the page of the schedule, not to its form."""
        return reverse("admin:fleet_schedule_overview", args=[result.pk])


@admin.register(Schedule)
class ScheduleAdmin(ManifestAdmin[Schedule]):
    """When and where jobs run, and why they do not."""

    form = schedule_form.ScheduleForm
    fieldsets = schedule_form.FIELDSETS
    verbs = (*schedule_verbs.VERBS, deletion(Schedule, delete_schedule, DELETED))
    save_verb = staticmethod(save_schedule)
    delete_verb = staticmethod(delete_schedule)
    search_fields = ("slug", "job__slug")
    list_select_related = ("job",)
    list_filter = ("enabled", ("shape", WordsFilter))
    lookups: ClassVar[frozenset[str]] = frozenset({"enabled__exact", "shape__exact", "job_id"})

    def get_queryset(self, request: HttpRequest) -> QuerySet[Schedule]:
        """Return the schedules with their jobs."""
        return super().get_queryset(request).select_related("job")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """Return the list that knows what was decided."""
        return ScheduleList

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """Return the columns; those that tell an age know this request's moment."""
        return schedule_cells.columns(now_of(request))

    def document_of(self, obj: Schedule) -> dict[str, object]:
        """Return the stored manifest."""
        return dict(obj.manifest)

    def object_url(self, obj: Schedule) -> str:
        """Return the schedule's page."""
        return reverse("admin:fleet_schedule_overview", args=[obj.pk])

    def links(self, request: HttpRequest, object_id: str | None) -> dict[str, Any]:
        """Return the pages beside the form, and the one that checks it."""
        found = super().links(request, object_id)
        query = f"?id={quote_plus(object_id)}" if object_id else ""
        return {**found, "check_url": reverse(self.url_name("check")) + query}

    def get_urls(self) -> list[Any]:
        """Return our pages, and the admin's own."""
        return [
            self.own_url("check/", self.check_view, "check"),
            self.own_url("<int:object_id>/overview/", self.overview_view, "overview"),
            self.own_url("<int:object_id>/preview/", self.preview_view, "preview"),
            *super().get_urls(),
        ]

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
