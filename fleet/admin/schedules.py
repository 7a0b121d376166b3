"""Schedules: when and where jobs run."""

from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse

from fleet.admin import schedule_cells, schedule_form, schedule_verbs
from fleet.admin.base import WordsFilter, now_of
from fleet.admin.manifest_admin import deletion
from fleet.admin.schedule_page import rows_of
from fleet.admin.schedule_views import ScheduleViews
from fleet.models import Schedule
from fleet.operations.schedules import delete_schedule, save_schedule

DELETED = "It fires no more. Its executions and their results stay as history."


class ScheduleList(ChangeList):
    """A page of schedules with what was decided about each, read together."""

    def get_results(self, request: HttpRequest) -> None:
        """Read the page, the evaluations in force, and the counts of the last day."""
        super().get_results(request)
        found = list(self.result_list)
        rows = rows_of(found, now=now_of(request), covered=True)
        for schedule in found:
            schedule.__dict__[schedule_cells.ROW] = rows[schedule.pk]
        self.result_list = found

    def url_for_result(self, result: Any) -> str:
        """Lead to the page of the schedule, not to its form."""
        return reverse("admin:fleet_schedule_overview", args=[result.pk])


@admin.register(Schedule)
class ScheduleAdmin(ScheduleViews):
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
