"""Who a target means: its members, alive or not, and the names that mean nobody."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from django.db.models import Case, Exists, IntegerField, Min, OuterRef, Q, QuerySet, Subquery, When
from django.db.models.functions import Lower

from fleet.models import Agent, AgentState, Command, Group, Membership, ScheduleAgent
from fleet.rules.liveness import ALIVE_FOR
from fleet.rules.targets import Target

# A machine that waits to be accepted is nobody yet; a quarantined one may come back.
MEMBER_STATES = [AgentState.ACTIVE.value, AgentState.QUARANTINED.value]


def members() -> QuerySet[Agent]:
    """Every agent that a target can mean."""
    return Agent.objects.filter(state__in=MEMBER_STATES)


def roster_of(target: Target) -> QuerySet[Agent]:
    """The members of a target, each once, alive or not."""
    if target.all:
        return members()
    meant = Q(pk__in=_members_of(target.groups)) if target.groups else Q(pk__in=[])
    if target.pcs:
        named = [name.casefold() for name in target.pcs]
        meant |= Q(name_fold__in=named) | Q(uuid_text__in=named)
    return members().filter(meant)


def _members_of(slugs: Iterable[str]) -> QuerySet[Membership, int]:
    groups = Group.objects.with_slug(*slugs)
    return Membership.objects.filter(group__in=groups).values_list("agent_id", flat=True)


def roster_of_groups(slugs: Iterable[str]) -> QuerySet[Agent]:
    """The members of groups, each once."""
    return members().filter(pk__in=_members_of(slugs))


def first_wave(groups: Mapping[int, str]) -> Subquery:
    """The number of an agent's first wave, given the waves' groups by number."""
    numbers = [When(slug_fold=slug.lower(), then=wave) for wave, slug in sorted(groups.items())]
    return Subquery(
        Membership.objects.filter(agent=OuterRef("pk"))
        .alias(slug_fold=Lower("group__slug"))
        .filter(slug_fold__in=[slug.lower() for slug in groups.values()])
        .values("agent")
        .annotate(number=Min(Case(*numbers, output_field=IntegerField())))
        .values("number")
    )


def is_alive(now: datetime, prefix: str = "") -> Q:
    """The condition that an agent is active and was heard lately; `prefix` leads to the agent."""
    return Q(
        **{
            f"{prefix}state": AgentState.ACTIVE,
            f"{prefix}presence__last_seen_at__gte": now - ALIVE_FOR,
        }
    )


def has_open_command(job_id: int, agent: str = "pk") -> Exists:
    """The condition that a command of the job is open on the agent in the column `agent`."""
    return Exists(Command.objects.open().filter(job=job_id, agent=OuterRef(agent)))


def due_rows(
    schedule_id: int | None, job_id: int, now: datetime, *, heard_by: datetime | None = None
) -> QuerySet[ScheduleAgent]:
    """A reconcile schedule's agents whose time has come, alive and free, longest due first.

    `heard_by` is the moment at which they are to be alive, if it is another one than `now`.
    """
    alive = is_alive(heard_by or now, "agent__")
    due = ScheduleAgent.objects.due(now).filter(alive, schedule=schedule_id)
    return due.exclude(has_open_command(job_id, "agent")).order_by("due_at", "agent_id")


def unknown_names(target: Target) -> tuple[str, ...]:
    """The PCs and groups that the target names and nobody knows, as written and in order."""
    pcs = {name.casefold() for name in target.pcs}
    known = set[str]()
    if pcs:
        found = members().filter(Q(name_fold__in=pcs) | Q(uuid_text__in=pcs))
        for name, uuid in found.values_list("name_fold", "uuid_text"):
            known |= {name, uuid}
    groups = set[str]()
    if target.groups:
        found_groups = Group.objects.with_slug(*target.groups).values_list("slug", flat=True)
        groups = {slug.lower() for slug in found_groups}
    return (
        *(name for name in target.pcs if name.casefold() not in known),
        *(slug for slug in target.groups if slug.lower() not in groups),
    )
