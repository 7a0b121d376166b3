"""One exchange of an agent after the other, where they change anything."""

from dataclasses import dataclass

from fleet.models import AgentPresence, AgentState
from fleet.models.callers import lock_presence


@dataclass(frozen=True, slots=True)
class Turn:
    """The agent as it is now: locked, so that it stays so until the transaction ends."""

    agent_id: int
    state: AgentState
    epoch: int
    # The number of its last hand-out.
    handouts: int


def take_turn(agent_id: int) -> Turn:
    """Wait until no other exchange of the agent is in a transaction, and return the agent.

    A proxy may repeat a request while the first is being answered; the second then waits here.
    """
    found = lock_presence(agent_id)
    if found is None:
        raise AgentPresence.DoesNotExist(f"agent {agent_id}")
    state, epoch, handouts = found
    return Turn(agent_id, AgentState(state), epoch, handouts)
