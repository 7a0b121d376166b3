"""The end of executions: those of which nothing is left to do, in one statement.

Asked after each result, so the ORM does not write it anew each time.
"""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from django.db import connection

from fleet.models.commands import OPEN_STATES

_OPEN = ", ".join(f"'{state}'" for state in OPEN_STATES)
_END = f"""
UPDATE fleet_execution SET state = 'ended', ended_at = %s
WHERE id = %s AND state = 'live'
  AND NOT EXISTS (SELECT 1 FROM fleet_command c
                  WHERE c.execution_id = fleet_execution.id
                    AND c.job_id = fleet_execution.job_id AND c.state IN ({_OPEN}))
  AND NOT EXISTS (SELECT 1 FROM fleet_wave w
                  WHERE w.execution_id = fleet_execution.id AND w.state = 'waiting')
"""  # noqa: S608  # constants of this module


def end_executions_without_work(executions: Collection[UUID], *, now: datetime) -> int:
    """End those that are live and have nothing open and no wave to come; return how many."""
    native = connection.features.has_native_uuid_field
    ended_at = connection.ops.adapt_datetimefield_value(now)
    rows = [(ended_at, key if native else key.hex) for key in executions]
    if not rows:
        return 0
    with connection.cursor() as cursor:
        cursor.executemany(_END, rows)
        return int(cursor.rowcount)
