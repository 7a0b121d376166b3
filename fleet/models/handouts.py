"""The move of commands to their agent, each only if it is still queued.

Every row gets a number and a time of its own. The ORM says that as one statement of CASE per
column, which costs more than all else about a hand-out; the same statement once a row does not.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import connection

from fleet.models.commands import Command

_MOVE = """
UPDATE fleet_command
SET state = 'handed_out', seq = %s, handed_out_at = %s, handed_out_epoch = %s, reap_at = %s,
    holds_slot = %s
WHERE id = %s AND state = 'queued'
"""


def move_to_agent(commands: Sequence[Command]) -> int:
    """Store the commands' hand-outs as their fields say; return how many were still queued."""
    native = connection.features.has_native_uuid_field
    rows: list[list[Any]] = [
        [
            command.seq,
            _time(command.handed_out_at),
            command.handed_out_epoch,
            _time(command.reap_at),
            command.holds_slot,
            command.pk if native else command.pk.hex,
        ]
        for command in commands
    ]
    with connection.cursor() as cursor:
        cursor.executemany(_MOVE, rows)
        return int(cursor.rowcount)


def _time(at: datetime | None) -> Any:
    return connection.ops.adapt_datetimefield_value(at)
