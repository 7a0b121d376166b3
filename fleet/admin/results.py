"""Results: how runs ended, the newest first."""

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import CharField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Cast
from django.http import HttpRequest
from django.utils.html import format_html

from fleet.admin import cells
from fleet.admin.base import WordsFilter, now_of
from fleet.admin.runs import RunAdmin
from fleet.models import Agent, Job, Result
from fleet.templatetags.kanade import NOTHING, ago, duration, pill

DELETED = "deleted"


@admin.register(Result)
class ResultAdmin(RunAdmin[Result]):
    """What the PCs reported."""

    list_filter = (("outcome", WordsFilter),)
    lookups: ClassVar[frozenset[str]] = frozenset(
        {"outcome__exact", "job_id", "agent_id", "execution_id", "schedule_id"}
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Result]:
        """Return the results with the names of PC and job, without their long notes."""
        agents = Agent.objects.filter(pk=OuterRef("agent_id")).values("name")[:1]
        jobs = Job.everything.filter(pk=OuterRef("job_id")).values("slug")[:1]
        return (
            super()
            .get_queryset(request)
            .defer("note")
            .annotate(
                agent_name=Cast(Subquery(agents), CharField()),
                job_slug=Cast(Subquery(jobs), CharField()),
            )
        )

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """Return the columns; the one that tells an age knows this request's moment."""
        now = now_of(request)

        @admin.display(description="received")
        def when(result: Result) -> str:
            return ago(result.received_at, now)

        return ["ended", "job", "on_pc", "exit_code", "took", "why", when]

    @admin.display(description="outcome")
    def ended(self, result: Result) -> str:
        """Return the outcome, with a mark for one that came late."""
        late = pill("expired", "late") if result.late else ""
        return format_html("{} {}", pill(result.outcome), late)

    @admin.display(description="job")
    def job(self, result: Result) -> str:
        """Return the job and its version."""
        return format_html(
            '{} <span class="utc">{}</span>',
            result.__dict__["job_slug"] or DELETED,
            result.job_version,
        )

    @admin.display(description="PC")
    def on_pc(self, result: Result) -> str:
        """Return the PC's name."""
        return result.__dict__["agent_name"] or DELETED

    @admin.display(description="took")
    def took(self, result: Result) -> str:
        """Return how long it ran, by the PC's own measure."""
        return duration(result.duration_ms)

    @admin.display(description="reason")
    def why(self, result: Result) -> str:
        """Return the beginning of the reason."""
        return cells.short(result.reason) or NOTHING
