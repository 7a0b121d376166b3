"""Runs: how bodies ended, the newest first."""

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html

from scheduler.admin.cells import NOTHING, ago, drawn
from scheduler.admin.lists import ReadOnlyAdmin, now_of
from scheduler.admin.task_page import SHOWN_TRACE, json_text
from scheduler.models import Run, Task
from scheduler.rules.looks import look_of
from scheduler.rules.spans import duration_words
from scheduler.rules.states import Outcome
from scheduler.rules.texts import clean_text

LONGEST_ERROR = 120


class OutcomeFilter(admin.SimpleListFilter):
    """How runs ended."""

    title = "outcome"
    parameter_name = "outcome"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the words."""
        return [(outcome.value, outcome.value) for outcome in Outcome]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Run]) -> QuerySet[Run]:
        """Return the runs of that word."""
        word = self.value()
        return queryset.filter(outcome=word) if word in set(Outcome) else queryset


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin[Run]):
    """The history."""

    list_filter = (OutcomeFilter,)
    lookups: ClassVar[frozenset[str]] = frozenset({"outcome", "task_id"})
    large: ClassVar[tuple[str, ...]] = ("input", "result", "trace")

    def get_ordering(self, request: HttpRequest) -> list[Any]:
        """Return the order: along the task's own index where one task is asked for."""
        return ["-lease_token"] if "task_id" in request.GET else ["-id"]

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """Return the columns; the one that tells an age knows this request's moment."""
        now = now_of(request)

        @admin.display(description="ended")
        def ended(run: Run) -> str:
            return ago(run.ended_at, now)

        return ["name", "how", ended, "took", "attempt", "runner_name", "why"]

    @admin.display(description="task")
    def name(self, run: Run) -> str:
        """Return the kind and the key."""
        if run.key is None:
            return run.kind
        return format_html('{} <span class="utc">{}</span>', run.kind, run.key)

    @admin.display(description="outcome")
    def how(self, run: Run) -> str:
        """Return the outcome."""
        return drawn(look_of(run.outcome), run.outcome)

    @admin.display(description="took")
    def took(self, run: Run) -> str:
        """Return how long the body ran."""
        return took(run)

    @admin.display(description="error")
    def why(self, run: Run) -> str:
        """Return the beginning of the error."""
        return clean_text(run.error, most=LONGEST_ERROR) or NOTHING

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the run's page."""
        run = self.get_visible(request, object_id)
        task_url = ""
        if Task.objects.filter(pk=run.task_id).exists():
            task_url = reverse("admin:scheduler_task_change", args=[run.task_id])
        context = {
            "title": str(run),
            "look": look_of(run.outcome),
            "took": took(run),
            "task_url": task_url,
            "error": clean_text(run.error),
            "trace": clean_text(run.trace, most=SHOWN_TRACE),
            "input": json_text(run.input),
            "result": json_text(run.result),
        }
        return self.page(request, "kanade/task_run.html", run, context)


def took(run: Run) -> str:
    """How long the body ran; a dash where none did."""
    if run.started_at is None:
        return NOTHING
    seconds = max(0.0, (run.ended_at - run.started_at).total_seconds())
    return duration_words(int(seconds * 1000))
