"""Commands: what each PC is asked to do, from its planning to its end."""

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from fleet.admin import cells
from fleet.admin.base import WordsFilter, now_of
from fleet.admin.runs import RunAdmin
from fleet.models import Command
from fleet.templatetags.kanade import NOTHING, ago, pill


@admin.register(Command)
class CommandAdmin(RunAdmin[Command]):
    """One row for each PC of each execution."""

    list_filter = (("state", WordsFilter),)
    list_select_related = ("agent", "job", "revision")
    lookups: ClassVar[frozenset[str]] = frozenset(
        {"state__exact", "agent_id", "job_id", "execution_id"}
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Command]:
        """Return the commands without the large columns beside them."""
        return super().get_queryset(request).defer("revision__manifest", "agent__facts")

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """Return the columns; the ones that tell an age know this request's moment."""
        now = now_of(request)

        @admin.display(description="planned")
        def planned(command: Command) -> str:
            return ago(command.created_at, now)

        @admin.display(description="deadline")
        def deadline(command: Command) -> str:
            return ago(command.deadline_at, now)

        return ["standing", "job", "agent", "why", planned, deadline]

    @admin.display(description="state")
    def standing(self, command: Command) -> str:
        """Return the state with its icon."""
        return pill(command.state)

    @admin.display(description="reason")
    def why(self, command: Command) -> str:
        """Return the beginning of the reason."""
        return cells.short(command.reason) or NOTHING
