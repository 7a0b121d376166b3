"""An agent becomes a member: of a group, and of the schedules that mean it."""

from datetime import datetime

from fleet.flow.asking import RECONCILE, mark_targets
from fleet.flow.manifests import schedule_manifest
from fleet.models import Agent, AgentState, Group, Membership, Schedule
from fleet.rules.manifest import ManifestError


def join(agent: Agent, group: Group | None, *, now: datetime) -> None:
    """Put a new agent into its group, and have the schedules that mean it count it in."""
    if group is not None:
        Membership.objects.get_or_create(group=group, agent=agent)
    if agent.state == AgentState.ACTIVE:
        count_in(agent, now=now)


def count_in(agent: Agent, *, now: datetime) -> None:
    """Have the schedules that mean this agent compute their targets anew."""
    groups = list(agent.groups.values_list("slug", flat=True))
    schedules = Schedule.objects.filter(enabled=True, shape__in=RECONCILE, runs_on_agent=False)
    meant = [one.pk for one in schedules.iterator() if _means(one, agent, groups)]
    mark_targets(Schedule.objects.filter(pk__in=meant), now=now)


def _means(schedule: Schedule, agent: Agent, groups: list[str]) -> bool:
    try:
        target = schedule_manifest(schedule).target
    except ManifestError:
        # The tick says so about the schedule.
        return False
    return target.matches(agent.name, groups, uuid=agent.uuid_text)
