"""Executions: one dispatch of a job, how far it has come, and how to stop it."""

from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html

from fleet.admin import cells, execution_verbs
from fleet.admin.base import ReadOnlyAdmin, WordsFilter, now_of
from fleet.admin.execution_page import execution_page
from fleet.admin.verbs import VerbAdmin
from fleet.flow.tallies import Standing, standings_of
from fleet.models import Execution
from fleet.templatetags.kanade import ago, pill, words

STANDING = "_kanade_standing"


class ExecutionList(ChangeList):
    """A page of executions with their tallies, counted together."""

    def get_results(self, request: HttpRequest) -> None:
        """Read the page, and count the commands of its executions in one query."""
        super().get_results(request)
        rows = list(self.result_list)
        standings = standings_of(rows)
        for row in rows:
            row.__dict__[STANDING] = standings[row.pk]
        self.result_list = rows


@admin.register(Execution)
class ExecutionAdmin(VerbAdmin[Execution], ReadOnlyAdmin[Execution]):
    """Executions, the newest first."""

    verbs = execution_verbs.VERBS
    list_per_page = 25
    list_filter = (
        ("state", WordsFilter),
        ("origin", WordsFilter),
    )
    list_select_related = ("job", "revision")
    lookups: ClassVar[frozenset[str]] = frozenset(
        {"state__exact", "origin__exact", "job_id", "schedule_id"}
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Execution]:
        """Return the executions without their large columns."""
        return super().get_queryset(request).defer("revision__manifest", "plan")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """Return the list that counts."""
        return ExecutionList

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """Return the columns; the one that tells an age knows this request's moment."""
        now = now_of(request)

        @admin.display(description="started")
        def when(execution: Execution) -> str:
            return ago(execution.created_at, now)

        return ["job_and_version", "standing", "progress", "asked_by", when]

    @admin.display(description="job")
    def job_and_version(self, execution: Execution) -> str:
        """Return the job and the version that runs."""
        return format_html(
            '{} <span class="utc">{}</span>', execution.job.slug, execution.revision.version
        )

    @admin.display(description="state")
    def standing(self, execution: Execution) -> str:
        """Return the word for how far it has come."""
        return pill(standing_of(execution).word)

    @admin.display(description="PCs")
    def progress(self, execution: Execution) -> str:
        """Return the counters by outcome."""
        counted = standing_of(execution).tally
        if counted is None:
            return f"{execution.planned} PCs"
        parts = [part for part in cells.parts_of(counted) if part.count]
        return ", ".join(f"{part.count} {part.word}" for part in parts) or "none"

    @admin.display(description="asked for by")
    def asked_by(self, execution: Execution) -> str:
        """Return the schedule or the person, and a mark for an override of the freeze."""
        who = execution.schedule_slug or execution.actor
        if execution.schedule_slug and execution.origin != "schedule":
            who = f"{execution.schedule_slug}, fired by {execution.actor}"
        if execution.override_freeze:
            return format_html("{} {}", who, pill("quarantined", "freeze overridden"))
        return who

    def get_urls(self) -> list[Any]:
        """Return our pages in place of the form."""
        return [
            self.own_url("<uuid:object_id>/live/", self.live_view, "live"),
            *super().get_urls(),
        ]

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the execution's page."""
        return self._drawn(request, object_id, "kanade/execution.html")

    def live_view(self, request: HttpRequest, object_id: object) -> HttpResponse:
        """Show the part of the page that changes while it runs."""
        return self._drawn(request, str(object_id), "kanade/execution_live.html")

    def _drawn(self, request: HttpRequest, object_id: str, template: str) -> HttpResponse:
        execution = self.get_visible(request, object_id)
        page = execution_page(execution, request.GET.dict())
        title = f"{execution.job.slug} {words(page.word)}"
        buttons = self.buttons(request, execution)
        context = {"title": title, "subtitle": None, "page": page, "verbs": buttons}
        return self.page(request, template, execution, context)


def standing_of(execution: Execution) -> Standing:
    """What the list counted for this row."""
    standing: Standing = execution.__dict__[STANDING]
    return standing
