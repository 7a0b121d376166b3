"""PCs: who they are, when they were heard, and what they do now."""

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Prefetch, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html

from fleet.admin import agent_verbs, cells
from fleet.admin.agent_page import agent_page
from fleet.admin.base import ReadOnlyAdmin, WordsFilter, now_of
from fleet.admin.verbs import VerbAdmin
from fleet.models import Agent, AgentState, Group
from fleet.rules.liveness import ALIVE_FOR
from fleet.rules.presence import STALE_FOR, Presence
from fleet.templatetags.kanade import pill

MOST_GROUPS_IN_FILTER = 100


class PresenceFilter(admin.SimpleListFilter):
    """Online, stale, offline."""

    title = "presence"
    parameter_name = "presence"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the three words."""
        return [(word.value, word.value) for word in Presence]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Agent]) -> QuerySet[Agent]:
        """Return the PCs of that word."""
        heard = "presence__last_seen_at"
        now = now_of(request)
        alive_since, known_since = now - ALIVE_FOR, now - STALE_FOR
        match self.value():
            case Presence.ONLINE:
                return queryset.filter(**{f"{heard}__gte": alive_since})
            case Presence.STALE:
                return queryset.filter(
                    **{f"{heard}__gte": known_since, f"{heard}__lt": alive_since}
                )
            case Presence.OFFLINE:
                return queryset.filter(
                    Q(**{f"{heard}__lt": known_since}) | Q(**{f"{heard}__isnull": True})
                )
        return queryset


class GroupFilter(admin.SimpleListFilter):
    """The members of a group."""

    title = "group"
    parameter_name = "group"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the first groups by id."""
        slugs = Group.objects.values_list("slug", flat=True)[:MOST_GROUPS_IN_FILTER]
        return [(slug, slug) for slug in slugs]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Agent]) -> QuerySet[Agent]:
        """Return the PCs of that group."""
        slug = self.value()
        return queryset.filter(memberships__group__slug=slug) if slug else queryset


@admin.register(Agent)
class AgentAdmin(VerbAdmin[Agent], ReadOnlyAdmin[Agent]):
    """The fleet, PC by PC."""

    verbs = agent_verbs.VERBS
    list_filter = (PresenceFilter, ("state", WordsFilter), GroupFilter)
    search_fields = ("name_fold",)
    search_help_text = "A part of the name, or the whole uuid."
    lookups: ClassVar[frozenset[str]] = frozenset({"presence", "state__exact", "group"})

    def get_queryset(self, request: HttpRequest) -> QuerySet[Agent]:
        """Return the PCs with their groups, in one more query whatever their number."""
        groups = Prefetch("groups", Group.objects.only("id", "slug").order_by("slug"))
        return super().get_queryset(request).select_related("presence").prefetch_related(groups)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Agent], search_term: str
    ) -> tuple[QuerySet[Agent], bool]:
        """Search by name, whatever its case, or by uuid; never by a secret."""
        word = search_term.strip().casefold()
        if not word:
            return queryset, False
        return queryset.filter(Q(name_fold__contains=word) | Q(uuid_text=word)), False

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """Return the columns; the one that tells an age knows this request's moment."""
        return [
            "name_and_state",
            cells.heard(now_of(request)),
            "in_groups",
            "system",
            "agent_version",
            "zone",
        ]

    @admin.display(description="PC", ordering="name_fold")
    def name_and_state(self, agent: Agent) -> str:
        """Return the name, with a mark where the PC takes no work."""
        if agent.state == AgentState.ACTIVE:
            return agent.name
        return format_html("{} {}", agent.name, pill(agent.get_state_display()))

    @admin.display(description="groups")
    def in_groups(self, agent: Agent) -> str:
        """Return the first groups of the PC."""
        return cells.first_of([group.slug for group in agent.groups.all()])

    @admin.display(description="system")
    def system(self, agent: Agent) -> str:
        """Return the operating system as the PC says it."""
        return cells.fact(agent.facts, "os")

    @admin.display(description="agent")
    def agent_version(self, agent: Agent) -> str:
        """Return the version of the agent program."""
        return cells.fact(agent.facts, "agent_version")

    def get_urls(self) -> list[Any]:
        """Return our page in place of the form."""
        return [self.own_url("<int:object_id>/live/", self.live_view, "live"), *super().get_urls()]

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the PC's page."""
        agent = self.get_visible(request, object_id)
        context = {
            "title": agent.name,
            "page": agent_page(agent, now=now_of(request)),
            "verbs": self.buttons(request, agent),
        }
        return self.page(request, "kanade/agent.html", agent, context)

    def live_view(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Show the part of the PC's page that changes."""
        agent = self.get_visible(request, str(object_id))
        context = {"page": agent_page(agent, now=now_of(request))}
        return self.page(request, "kanade/agent_live.html", agent, context)
