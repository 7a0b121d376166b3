"""Tasks: how they stand, and what people do to them."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html

from scheduler.admin.cells import NOTHING, ago, drawn
from scheduler.admin.lists import ReadOnlyAdmin, now_of
from scheduler.admin.refusals import REFUSALS, show_refusal
from scheduler.admin.task_page import task_page
from scheduler.admin.task_verbs import VERBS
from scheduler.admin.verbs import VerbAdmin
from scheduler.engine.facts import standing_of
from scheduler.models import Task
from scheduler.models.tasks import TaskQuerySet
from scheduler.registry import REGISTRY
from scheduler.rules.looks import look_of
from scheduler.rules.standing import words
from scheduler.rules.states import Phase, TaskState

LARGEST_ID = 2**63 - 1


class StateFilter(admin.SimpleListFilter):
    """What tasks do now, in the words of people."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the words, and the stored one that covers several of them."""
        pending = TaskState.PENDING.value
        return [(phase.value, phase.value) for phase in Phase] + [(pending, "pending: any")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Task]) -> QuerySet[Task]:
        """Return the tasks of that word."""
        word = self.value()
        if word == TaskState.PENDING.value:
            return queryset.filter(state=word)
        if word not in set(Phase) or not isinstance(queryset, TaskQuerySet):
            return queryset
        return queryset.in_phase(Phase(word), now_of(request))


class KindFilter(admin.SimpleListFilter):
    """Kinds that have a handler here."""

    title = "kind"
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the registered kinds."""
        return [(name, name) for name in sorted(REGISTRY.kinds)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Task]) -> QuerySet[Task]:
        """Return the tasks of that kind."""
        name = self.value()
        return queryset.filter(kind=name) if name else queryset


@admin.register(Task)
class TaskAdmin(VerbAdmin[Task], ReadOnlyAdmin[Task]):
    """The scheduler's tasks."""

    verbs = VERBS
    refusals = REFUSALS
    list_filter = (StateFilter, KindFilter)
    # What the search looks at is below; the names here only make the box appear.
    search_fields = ("key",)
    search_help_text = "A whole key or kind, or the number of a task."
    lookups: ClassVar[frozenset[str]] = frozenset({"state", "kind"})
    large: ClassVar[tuple[str, ...]] = ("input", "next_input", "result", "last_error")

    def show_refusal(self, form: forms.BaseForm, refusal: Exception) -> None:
        """Say at the field why it was not done."""
        show_refusal(form, refusal)

    def audit_id(self, obj: Task) -> str:
        """Return the task's number."""
        return str(obj.pk)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Task], search_term: str
    ) -> tuple[QuerySet[Task], bool]:
        """Find by the whole key, kind or number: parts of them would read the whole table."""
        word = search_term.strip()
        if not word:
            return queryset, False
        found = Q(key=word) | Q(kind=word)
        if word.isascii() and word.isdigit() and int(word) <= LARGEST_ID:
            found |= Q(pk=int(word))
        return queryset.filter(found), False

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """Return the columns; those that tell an age know this request's moment."""
        now = now_of(request)

        @admin.display(description="state")
        def stands(task: Task) -> str:
            return drawn(look_of(task.phase(now)), words(standing_of(task), now=now))

        @admin.display(description="due")
        def due(task: Task) -> str:
            return ago(task.due_at, now)

        return ["name", stands, due, "recurs", "queue", "priority", "runs"]

    @admin.display(description="task")
    def name(self, task: Task) -> str:
        """Return the kind and the key."""
        if task.key is None:
            return task.kind
        return format_html('{} <span class="utc">{}</span>', task.kind, task.key)

    @admin.display(description="cron")
    def recurs(self, task: Task) -> str:
        """Return the cron in force, with a mark where staff typed it."""
        if task.cron_override is not None:
            return format_html(
                '<code>{}</code> <span class="utc">by staff</span>', task.cron_override
            )
        return format_html("<code>{}</code>", task.cron) if task.cron else NOTHING

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the task's page."""
        return self._drawn(request, object_id, "kanade/task.html")

    def get_urls(self) -> list[Any]:
        """Return the part of our page that renews itself, and the admin's own addresses."""
        return [self.own_url("<int:object_id>/live/", self.live_view, "live"), *super().get_urls()]

    def live_view(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Show the part of the task's page that changes."""
        return self._drawn(request, str(object_id), "kanade/task_live.html")

    def _drawn(self, request: HttpRequest, object_id: str, template: str) -> HttpResponse:
        task = self.get_visible(request, object_id)
        context = {
            "title": str(task),
            "page": task_page(task, now=now_of(request)),
            "verbs": self.buttons(request, task),
        }
        return self.page(request, template, task, context)
