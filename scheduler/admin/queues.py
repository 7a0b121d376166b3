"""Queues that somebody paused or limited."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from scheduler import public
from scheduler.admin.acting import actor_of
from scheduler.admin.cells import drawn
from scheduler.admin.lists import ReadOnlyAdmin, now_of
from scheduler.admin.queue_health import SEES_HEALTH, health_page
from scheduler.admin.refusals import REFUSALS, show_refusal
from scheduler.admin.verbs import Call, Done, ReasonForm, Verb, VerbAdmin
from scheduler.models import Queue
from scheduler.rules.looks import OK, STOPPED
from scheduler.rules.orders import LONGEST_QUEUE

CHANGE = "scheduler.change_queue"
RIGHTS = ("scheduler.view_queue", CHANGE)
MOST_RUNNING = 10_000


class PauseForm(ReasonForm):
    """Which queue is paused; one that nobody changed before has no row of its own."""

    queue = forms.CharField(
        max_length=LONGEST_QUEUE, help_text="Its name; tasks that name no queue are in “default”."
    )
    field_order = ("queue", "reason")


class LimitForm(ReasonForm):
    """How many bodies of a queue run at once."""

    most_running = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_RUNNING,
        label="At most",
        help_text="Bodies at once on all runners together; empty = any number.",
    )
    field_order = ("most_running", "reason")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.target is not None:
            self.initial["most_running"] = self.target.most_running


def _by(call: Call[Queue]) -> Any:
    return {"actor": call.actor, "reason": call.data["reason"], "now": call.now}


def _pause(call: Call[Queue]) -> Done:
    public.pause_queue(call.obj.name, **_by(call))
    return Done(f"Nothing more is taken from {call.obj}.")


def _resume(call: Call[Queue]) -> Done:
    public.resume_queue(call.obj.name, **_by(call))
    return Done(f"Tasks are taken from {call.obj} again.")


def _limit(call: Call[Queue]) -> Done:
    public.limit_queue(call.obj.name, call.data["most_running"], **_by(call))
    return Done(f"{call.obj} has another limit.")


RESUME: Verb[Queue] = Verb(
    name="resume",
    title="Resume",
    text="Runners take tasks from the queue again.",
    permissions=RIGHTS,
    act=_resume,
    look="primary",
    fits=lambda queue: queue.paused,
)
PAUSE: Verb[Queue] = Verb(
    name="pause",
    title="Pause",
    text="Nothing more is taken from the queue. Bodies that run now go on.",
    permissions=RIGHTS,
    act=_pause,
    look="danger",
    fits=lambda queue: not queue.paused,
)
LIMIT: Verb[Queue] = Verb(
    name="limit",
    title="Limit",
    text="At most so many bodies of the queue run at once.",
    permissions=RIGHTS,
    act=_limit,
    form=LimitForm,
    for_many=False,
)


@admin.register(Queue)
class QueueAdmin(VerbAdmin[Queue], ReadOnlyAdmin[Queue]):
    """What is special about some queues."""

    verbs = (RESUME, PAUSE, LIMIT)
    refusals = REFUSALS
    list_display = ("name", "stands", "limit")
    lookups: ClassVar[frozenset[str]] = frozenset()

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Answer whether this person may name a queue to be paused."""
        return bool(request.user.has_perms(RIGHTS))

    def get_urls(self) -> list[Any]:
        """Return the page of the whole queue with its part that renews itself, and Django's own."""
        return [
            self.own_url("health/", self.health_view, "health"),
            self.own_url("health/live/", self.health_live_view, "health_live"),
            *super().get_urls(),
        ]

    def health_view(self, request: HttpRequest) -> HttpResponse:
        """Show how the queue is."""
        return self._health(request, "kanade/queue_health.html")

    def health_live_view(self, request: HttpRequest) -> HttpResponse:
        """Show the part of that page that changes."""
        return self._health(request, "kanade/queue_health_live.html")

    def _health(self, request: HttpRequest, template: str) -> HttpResponse:
        if not request.user.has_perms(SEES_HEALTH):
            raise PermissionDenied
        context = health_page(public.queue_health(now_of(request)))
        return self.page(request, template, None, context)

    def show_refusal(self, form: forms.BaseForm, refusal: Exception) -> None:
        """Say at the field why it was not done."""
        show_refusal(form, refusal)

    @admin.display(description="state")
    def stands(self, queue: Queue) -> str:
        """Return whether tasks are taken from it."""
        return drawn(STOPPED, "paused") if queue.paused else drawn(OK, "taken from")

    @admin.display(description="at most")
    def limit(self, queue: Queue) -> str:
        """Return how many bodies of it run at once."""
        return "any number" if queue.most_running is None else str(queue.most_running)

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Pause a queue by its name."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        posted = request.POST if request.method == "POST" else None
        form = PauseForm(posted, user=request.user)
        if form.is_bound and form.is_valid():
            data = form.cleaned_data
            try:
                public.pause_queue(
                    data["queue"],
                    actor=actor_of(request),
                    reason=data["reason"],
                    now=now_of(request),
                )
            except REFUSALS as refusal:
                show_refusal(form, refusal)
            else:
                messages.success(request, f"Nothing more is taken from {data['queue']}.")
                return HttpResponseRedirect(reverse(self.url_name("changelist")))
        back = reverse(self.url_name("changelist"))
        context = {"title": "Pause a queue", "verb": PAUSE, "form": form, "back": back}
        return self.page(request, "kanade/verb.html", None, context)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the queue's page."""
        queue = self.get_visible(request, object_id)
        context = {
            "title": queue.name,
            "stands": self.stands(queue),
            "limit": self.limit(queue),
            "verbs": self.buttons(request, queue),
        }
        return self.page(request, "kanade/queue.html", queue, context)
