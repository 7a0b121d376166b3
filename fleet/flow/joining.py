"""An agent becomes a member: of a group, and of the schedules that mean it."""

from datetime import datetime

from fleet.flow.targets import count_in
from fleet.models import Agent, AgentState, Group, Membership


def join(agent: Agent, group: Group | None, *, now: datetime) -> None:
    """Put a new agent into its group, and have the schedules that mean it count it in."""
    if group is not None:
        Membership.objects.get_or_create(group=group, agent=agent)
    if agent.state == AgentState.ACTIVE:
        count_in(agent, now=now)
