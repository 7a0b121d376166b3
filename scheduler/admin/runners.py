"""Runners: which processes take tasks, and when they were last heard of."""

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse

from scheduler.admin.cells import drawn, moment
from scheduler.admin.lists import ReadOnlyAdmin
from scheduler.models import Runner, Task
from scheduler.rules.leases import SILENCE
from scheduler.rules.looks import BAD, OK, STOPPED, Look
from scheduler.rules.spans import span_words

MOST_HELD = 50


@admin.register(Runner)
class RunnerAdmin(ReadOnlyAdmin[Runner]):
    """Processes of `runscheduler`."""

    list_display = ("name", "host", "stands", "workers", "takes", "heard", "since")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Runner]:
        """Return the runners with the database's time: their ages are on its clock."""
        return super().get_queryset(request).annotate(database_now=Now())

    @admin.display(description="state")
    def stands(self, runner: Runner) -> str:
        """Return whether it is alive, silent or stopped."""
        return drawn(*state_of(runner))

    @admin.display(description="queues")
    def takes(self, runner: Runner) -> str:
        """Return the queues that it takes tasks from."""
        return queues_of(runner)

    @admin.display(description="last tick")
    def heard(self, runner: Runner) -> str:
        """Return when it was last heard of."""
        return moment(runner.last_tick_at, seconds=True)

    @admin.display(description="started")
    def since(self, runner: Runner) -> str:
        """Return when it started."""
        return moment(runner.started_at)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the runner's page with what it holds."""
        runner = self.get_visible(request, object_id)
        look, word = state_of(runner)
        held = Task.objects.held_by(runner.pk).only("kind", "key", "started_at", "state")
        context = {
            "title": runner.name,
            "look": look,
            "word": word,
            "queues": queues_of(runner),
            "held": list(held.order_by("started_at")[:MOST_HELD]),
        }
        return self.page(request, "kanade/runner.html", runner, context)


def state_of(runner: Runner) -> tuple[Look, str]:
    """The state of a runner: how it looks, and its words."""
    if runner.stopped_at is not None:
        return STOPPED, "stopped"
    silent = timedelta(seconds=runner.silent_for(runner.__dict__["database_now"]))
    if silent > SILENCE:
        return BAD, f"silent for {span_words(silent)}"
    return OK, "alive"


def queues_of(runner: Runner) -> str:
    """The queues that a runner takes tasks from, in words."""
    return "all" if runner.queues is None else ", ".join(map(str, runner.queues))
