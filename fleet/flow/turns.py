"""One exchange of an agent after the other, where they change anything."""

from fleet.models import AgentPresence


def take_turn(agent_id: int) -> AgentPresence:
    """Return the agent's presence with the agent as it is now, locked for this transaction.

    A proxy may repeat a request while the first is being answered; the second then waits here.
    """
    rows = AgentPresence.objects.select_related("agent").select_for_update(of=("self",))
    return rows.get(pk=agent_id)
