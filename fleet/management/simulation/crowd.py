"""A crowd of simulated PCs that works for some minutes."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from fleet.agent.address import read_address
from fleet.management.simulation.connection import Connection, tls_context
from fleet.management.simulation.pc import Habits, Pc
from fleet.management.simulation.tally import Tally

logger = logging.getLogger(__name__)

# So many begin in a second: a fleet is not switched on by one switch.
BEGINNERS_PER_SECOND = 25


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a simulation. `agent_ids` are those that enrolled."""

    tally: Tally
    agent_ids: list[str] = field(default_factory=list)


async def simulate(
    habits: Habits,
    *,
    agents: int,
    seconds: float,
    ca: Path | None,
    clock: Callable[[], datetime],
    on_ready: Callable[[], None],
) -> Outcome:
    """Let so many PCs work; the time begins, and that of exchanges, once all have enrolled.

    A PC that fails for a reason that no server can give ends the simulation with its error.
    """
    servers = (read_address(habits.server), read_address(habits.wait_server))
    contexts = [tls_context(server, ca) for server in servers]
    tally = Tally()
    width = len(str(agents))
    pcs = []
    for number in range(1, agents + 1):
        talking, waiting = map(Connection, servers, contexts)
        pcs.append(Pc(f"sim-{number:0{width}}", habits, (talking, waiting), tally, clock))
    tasks: list[asyncio.Task[None]] = []
    try:
        for pc in pcs:
            tasks.append(asyncio.create_task(pc.live(), name=pc.name))
            await asyncio.sleep(1 / BEGINNERS_PER_SECOND)
        await _all_enrolled(pcs, tasks)
        tally.start_over()
        on_ready()
        await _work(tasks, seconds)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return Outcome(tally, [pc.agent_id for pc in pcs if pc.agent_id])


async def _all_enrolled(pcs: list[Pc], tasks: list[asyncio.Task[None]]) -> None:
    while not all(pc.agent_id for pc in pcs):
        await _work(tasks, 0.2)


async def _work(tasks: list[asyncio.Task[None]], seconds: float) -> None:
    done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    for task in done:
        task.result()
