"""Writing many commands in one statement: the ORM cannot say INSERT … SELECT.

Ten thousand rows through the ORM take seconds, in which SQLite lets nobody else write. The
machines' places in the jitter are drawn by the database, by the integers of
`fleet.rules.fanout.drawn_delay`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection

from fleet.rules.command_states import CommandState

_MILLISECOND = timedelta(milliseconds=1)

# Who has a command of this execution, or an open one that a unique key forbids to double, gets
# none. The numbers are those of fleet.rules.fanout; a test compares the draws.
_POSTGRES = """
INSERT INTO fleet_command (
    id, execution_id, agent_id, job_id, revision_id, schedule_id, wave, state, reason, reconciles,
    max_concurrent, holds_slot, override_freeze, seq, created_at, attempt, start_after, deadline_at
)
SELECT
    overlay(gen_random_uuid()::text placing %(stamp)s from 1 for 15)::uuid,
    %(execution)s::uuid, agent_id, %(job)s, %(revision)s, %(schedule)s::bigint, %(wave)s, %(state)s,
    '', %(reconciles)s, %(max_concurrent)s::integer, false, %(override_freeze)s, 0,
    %(created_at)s::timestamptz, 0,
    start_after, LEAST(start_after + %(wait)s::interval, %(deadline_at)s::timestamptz)
FROM (
    SELECT id AS agent_id, %(due_at)s::timestamptz + interval '1 millisecond' * (
        ((id %% 2147483648) * 2654435761 + %(seed)s) %% 4294967296 * %(span_ms)s / 4294967296
    ) AS start_after
    FROM fleet_agent WHERE id = ANY(%(agents)s)
) AS chosen
ORDER BY agent_id
ON CONFLICT DO NOTHING
"""
_SQLITE = """
INSERT INTO fleet_command (
    id, execution_id, agent_id, job_id, revision_id, schedule_id, wave, state, reason, reconciles,
    max_concurrent, holds_slot, override_freeze, seq, created_at, attempt, start_after, deadline_at
)
SELECT
    lower(%(stamp)s || substr(hex(randomblob(2)), 2, 3)
        || substr('89ab', 1 + (random() & 3), 1) || substr(hex(randomblob(8)), 2, 15)),
    %(execution)s, agent_id, %(job)s, %(revision)s, %(schedule)s, %(wave)s, %(state)s,
    '', %(reconciles)s, %(max_concurrent)s, 0, %(override_freeze)s, 0,
    %(created_at)s, 0,
    CASE WHEN delay_ms = 0 THEN %(due_at)s ELSE
        strftime('%%Y-%%m-%%d %%H:%%M:%%f', %(due_at)s,
                 printf('+%%.3f seconds', delay_ms / 1000.0)) || '000' END,
    min(
        CASE WHEN delay_ms = 0 THEN %(own_deadline)s ELSE
            strftime('%%Y-%%m-%%d %%H:%%M:%%f', %(due_at)s,
                     printf('+%%.3f seconds', (delay_ms + %(wait_ms)s) / 1000.0)) || '000' END,
        %(deadline_at)s
    )
FROM (
    SELECT id AS agent_id,
        ((id %% 2147483648) * 2654435761 + %(seed)s) %% 4294967296 * %(span_ms)s / 4294967296
        AS delay_ms
    FROM fleet_agent WHERE id IN (SELECT value FROM json_each(%(agents)s))
) AS chosen
WHERE true
ORDER BY agent_id
ON CONFLICT DO NOTHING
"""


@dataclass(frozen=True, slots=True)
class NewCommands:
    """What the commands of one wave have in common."""

    execution_id: UUID
    job_id: int
    revision_id: int
    schedule_id: int | None
    wave: int
    state: CommandState
    reconciles: bool
    max_concurrent: int | None
    override_freeze: bool
    created_at: datetime
    # Starts are spread over `span` from `due_at` on; each machine's place comes from the seed.
    due_at: datetime
    span: timedelta
    seed: int
    # A command may wait so long from its own start on, and never beyond `deadline_at`.
    wait: timedelta
    deadline_at: datetime

    def insert_for(self, agents: Sequence[int]) -> int:
        """Write one command for each agent (keys, at most some thousands); return how many.

        Losing to a unique key is no error: the agent has its command already.
        """
        if not agents:
            return 0
        on_postgres = connection.vendor == "postgresql"
        params = self._postgres(agents) if on_postgres else self._sqlite(agents)
        with connection.cursor() as cursor:
            cursor.execute(_POSTGRES if on_postgres else _SQLITE, params)
            return int(cursor.rowcount)

    def _shared(self) -> dict[str, Any]:
        return {
            "job": self.job_id,
            "revision": self.revision_id,
            "schedule": self.schedule_id,
            "wave": self.wave,
            "state": self.state.value,
            "reconciles": self.reconciles,
            "max_concurrent": self.max_concurrent,
            "override_freeze": self.override_freeze,
            "created_at": _stored(self.created_at),
            "due_at": _stored(self.due_at),
            "seed": self.seed,
            "span_ms": self.span // _MILLISECOND,
            "deadline_at": _stored(self.deadline_at),
        }

    def _postgres(self, agents: Sequence[int]) -> dict[str, Any]:
        stamp = _stamp(self.created_at)
        return self._shared() | {
            "execution": self.execution_id,
            # A random version 4 becomes a version 7 when its head is the time.
            "stamp": f"{stamp[:8]}-{stamp[8:]}-7",
            "wait": self.wait,
            "agents": list(agents),
        }

    def _sqlite(self, agents: Sequence[int]) -> dict[str, Any]:
        return self._shared() | {
            "execution": self.execution_id.hex,
            "stamp": f"{_stamp(self.created_at)}7",
            "wait_ms": self.wait // _MILLISECOND,
            "own_deadline": _stored(self.due_at + self.wait),
            "agents": json.dumps(list(agents)),
        }


def _stamp(moment: datetime) -> str:
    """The first 48 bits of a uuid7: the millisecond in hex."""
    return f"{int(moment.timestamp() * 1000):012x}"


def _stored(moment: datetime) -> object:
    """The moment as the database's raw cursor takes it."""
    return connection.ops.adapt_datetimefield_value(moment)
