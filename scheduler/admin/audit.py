"""The audit: who did what, the newest first. Nothing here is ever changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html

from scheduler.admin.cells import moment
from scheduler.admin.lists import ReadOnlyAdmin
from scheduler.admin.task_page import json_text
from scheduler.models import AuditEntry
from scheduler.rules.actors import ACTOR_KINDS


class ActorKindFilter(admin.SimpleListFilter):
    """People, tokens, commands, agents."""

    title = "who"
    parameter_name = "actor_kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the kinds."""
        return [(kind, kind) for kind in ACTOR_KINDS]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[AuditEntry]
    ) -> QuerySet[AuditEntry]:
        """Return the acts of that kind of actor."""
        kind = self.value()
        return queryset.filter(actor_kind=kind) if kind else queryset


@dataclass(frozen=True, slots=True)
class Change:
    """One value before and after an act, as text."""

    name: str
    before: str
    after: str

    @property
    def is_changed(self) -> bool:
        """Whether the act changed it."""
        return self.before != self.after


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin[AuditEntry]):
    """Who did what to which thing."""

    list_display = ("when", "who", "action", "on_what", "reason_shown")
    list_filter = (ActorKindFilter,)
    # What the search looks at is below; the names here only make the box appear.
    search_fields = ("actor_name",)
    search_help_text = "A whole name of an actor or of a thing."
    lookups: ClassVar[frozenset[str]] = frozenset(
        {"object_kind", "object_id", "actor_kind", "actor_name", "action"}
    )
    large: ClassVar[tuple[str, ...]] = ("before", "after")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[AuditEntry], search_term: str
    ) -> tuple[QuerySet[AuditEntry], bool]:
        """Find by the whole name of who acted or of what was acted on."""
        word = search_term.strip()
        if not word:
            return queryset, False
        return queryset.filter(Q(actor_name=word) | Q(object_id=word)), False

    @admin.display(description="when")
    def when(self, entry: AuditEntry) -> str:
        """Return the time."""
        return moment(entry.at, seconds=True)

    @admin.display(description="who")
    def who(self, entry: AuditEntry) -> str:
        """Return the actor and what kind of actor it is."""
        return format_html('{} <span class="utc">{}</span>', entry.actor_name, entry.actor_kind)

    @admin.display(description="on what")
    def on_what(self, entry: AuditEntry) -> str:
        """Return the kind and the name of the thing."""
        return f"{entry.object_kind} {entry.object_id}"

    @admin.display(description="reason")
    def reason_shown(self, entry: AuditEntry) -> str:
        """Return the beginning of the reason."""
        return entry.reason[:120]

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the entry with what was before and after."""
        entry = self.get_visible(request, object_id)
        context = {"title": str(entry), "changes": changes_of(entry.before, entry.after)}
        return self.page(request, "kanade/audit_entry.html", entry, context)


def changes_of(before: object, after: object) -> Sequence[Change]:
    """The values on both sides, those that changed first."""
    old, new = _values(before), _values(after)
    names = [*old, *(name for name in new if name not in old)]
    found = [Change(name, old.get(name, ""), new.get(name, "")) for name in names]
    return sorted(found, key=lambda change: not change.is_changed)


def _values(side: object) -> dict[str, str]:
    if side is None:
        return {}
    if not isinstance(side, Mapping):
        return {"value": json_text(side)}
    return {
        str(name): value if isinstance(value, str) else json_text(value)
        for name, value in side.items()
    }
