"""Ending runs that went well, many in one statement, if nothing was asked of them meanwhile.

Each row carries what the claim saw; a task whose lease or generation moved on is left alone, and
ended one by one from the row as it is now.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from scheduler.models.batches import adapt, array, table
from scheduler.rules.claims import Ending
from scheduler.rules.states import Outcome

_UNTOUCHED = """t.state = 'running' AND t.lease_token = ended.token
    AND t.generation = ended.generation AND NOT t.rerun"""
_ENDED = "WITH ended(task, token, generation, ended_at, result) AS ({rows})"
# The history first: its rows say which tasks are still ours, and lock them until the commit.
_RECORD = (
    _ENDED
    + """
INSERT INTO scheduler_run (task_id, kind, key, input, lease_token, attempt, outcome, due_at,
    occurrence_at, started_at, ended_at, runner_name, error, trace, result, missed,
    dropped_request)
SELECT t.id, t.kind, t.key, t.input, t.lease_token, t.attempt, %s, t.due_at,
    CASE WHEN t.extra THEN NULL ELSE t.occurrence_at END, t.started_at, ended.ended_at, %s, '', '',
    ended.result{json}, t.missed, false
FROM ended JOIN scheduler_task t ON t.id = ended.task
WHERE """
    + _UNTOUCHED
    + """ {lock}
RETURNING id, task_id
"""
)
_LEFT = """
    runner_id = NULL, body_started = false, suspect = false, crash_count = 0,
    last_error = '', reason = '', missed = 0, updated_at = %s"""
_CLOSE = """
UPDATE scheduler_task
SET state = 'finished', due_at = NULL, not_before = NULL, ended_at = %s, result = r.result, {left}
FROM scheduler_run r
WHERE scheduler_task.id = r.task_id AND r.id {among}
RETURNING scheduler_task.id, EXISTS (
    SELECT 1 FROM scheduler_dependency d WHERE d.dependency_id = scheduler_task.id)
"""
_NEXT = """
WITH due(task, token, generation, due_at, is_ready, result) AS ({rows})
UPDATE scheduler_task
SET state = 'pending', due_at = due.due_at, not_before = due.due_at, occurrence_at = due.due_at,
    ready = due.is_ready, extra = false, retry_count = 0, attempt = 0, result = due.result{json},
    {left}
FROM due
WHERE id = due.task AND state = 'running' AND lease_token = due.token
    AND scheduler_task.generation = due.generation AND NOT rerun
RETURNING id
"""


@dataclass(frozen=True, slots=True)
class Next:
    """A recurring task that goes on at its next occurrence."""

    ending: Ending
    result: object
    due_at: datetime
    ready: bool


def record(endings: Mapping[int, tuple[Ending, object]], *, runner_name: str) -> dict[int, int]:
    """Write the history of successes (task to ending and result); return run ids by task.

    Tasks that are not in the answer have moved on.
    """
    rows = [
        (task_id, ending.claim.token, ending.claim.generation, ending.ended_at, _json(result))
        for task_id, (ending, result) in sorted(endings.items())
    ]
    if not rows:
        return {}
    postgres = connection.vendor == "postgresql"
    source, params = table(rows, ("bigint", "bigint", "bigint", "timestamptz", "text"))
    statement = _RECORD.format(
        rows=source,
        json="::jsonb" if postgres else "",
        lock="FOR UPDATE OF t" if postgres else "",
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, [*params, Outcome.SUCCEEDED.value, runner_name])
        return {task_id: run_id for run_id, task_id in cursor.fetchall()}


def close(run_ids: Sequence[int], *, now: datetime) -> list[int]:
    """Finish the one-shot tasks of runs that `record` wrote; return those that others wait for.

    `record` has locked them, so whoever wanted to wait for one does by now, or sees its end.
    """
    if not run_ids:
        return []
    moment = adapt(now)
    postgres = connection.vendor == "postgresql"
    among = "= ANY(%s::bigint[])" if postgres else "IN (SELECT value FROM json_each(%s))"
    ids = array(run_ids) if postgres else json.dumps(run_ids)
    statement = _CLOSE.format(left=_LEFT, among=among)
    with connection.cursor() as cursor:
        cursor.execute(statement, [moment, moment, ids])
        return [task_id for task_id, is_awaited in cursor.fetchall() if is_awaited]


def go_on(nexts: Sequence[Next], *, now: datetime) -> set[int]:
    """Let recurring tasks wait for their next occurrence; return those that did not move on."""
    rows = [
        (
            one.ending.claim.task_id,
            one.ending.claim.token,
            one.ending.claim.generation,
            one.due_at,
            one.ready,
            _json(one.result),
        )
        for one in sorted(nexts, key=lambda one: one.ending.claim.task_id)
    ]
    if not rows:
        return set()
    types = ("bigint", "bigint", "bigint", "timestamptz", "boolean", "text")
    source, params = table(rows, types)
    statement = _NEXT.format(
        left=_LEFT,
        rows=source,
        json="::jsonb" if connection.vendor == "postgresql" else "",
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, [*params, adapt(now)])
        return {task_id for (task_id,) in cursor.fetchall()}


def _json(value: object) -> str | None:
    return None if value is None else json.dumps(value)
