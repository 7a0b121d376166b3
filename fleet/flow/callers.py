"""The agent that calls, found in one query with all that an exchange without news needs."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef

from fleet.models import Agent, AgentPresence, Command, ScheduleAgent
from fleet.rules.command_states import HELD, CommandState
from fleet.rules.sessions import Session

_CONCERNS = [CommandState.QUEUED.value, *(state.value for state in CommandState if state in HELD)]


@dataclass(frozen=True, slots=True)
class Caller:
    """An agent, its presence, and whether there is anything to see to."""

    agent: Agent
    presence: AgentPresence
    has_commands: bool
    is_parked: bool

    @property
    def session(self) -> Session:
        """What was last heard of it."""
        agent = self.agent
        return Session(agent.fingerprint, agent.epoch, agent.boot_id, self.presence.seq)


def find_caller(uuid: str) -> Caller | None:
    """Return the agent of that uuid, or None."""
    commands = Command.objects.filter(agent=OuterRef("pk"), state__in=_CONCERNS)
    parked = ScheduleAgent.objects.filter(agent=OuterRef("pk"), parked_due_at__isnull=False)
    agent: Any = (
        Agent.objects.filter(uuid_text=uuid)
        .select_related("presence")
        .annotate(has_commands=Exists(commands), is_parked=Exists(parked))
        .first()
    )
    if agent is None:
        return None
    return Caller(agent, agent.presence, agent.has_commands, agent.is_parked)
