"""Ending runs that went well, many in one statement, if nothing was asked of them meanwhile.

Each row carries what the claim saw; a task whose lease or generation moved on is left alone, and
ended one by one from the row as it is now.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from scheduler.rules.claims import Ending
from scheduler.rules.states import Outcome

# What both databases take as a parameter once datetimes are adapted.
Param = str | int | None

_UNTOUCHED = """t.state = 'running' AND t.lease_token = ended.token
    AND t.generation = ended.generation AND NOT t.rerun"""
_ENDED = """WITH ended(task, token, generation, ended_at, result) AS (VALUES {values})"""
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
WHERE scheduler_task.id = r.task_id AND r.id IN ({ids})
"""
_NEXT = """
WITH due(task, token, generation, due_at, is_ready, result) AS (VALUES {values})
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
    statement = _RECORD.format(
        values=_values(len(rows), 5),
        json="::jsonb" if postgres else "",
        lock="FOR UPDATE OF t" if postgres else "",
    )
    params = [*_flat(rows), Outcome.SUCCEEDED.value, runner_name]
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        return {task_id: run_id for run_id, task_id in cursor.fetchall()}


def close(run_ids: Sequence[int], *, now: datetime) -> None:
    """Finish the one-shot tasks of runs that `record` has just written."""
    if not run_ids:
        return
    moment = _adapt(now)
    statement = _CLOSE.format(left=_LEFT, ids=", ".join(["%s"] * len(run_ids)))
    with connection.cursor() as cursor:
        cursor.execute(statement, [moment, moment, *run_ids])


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
    statement = _NEXT.format(
        left=_LEFT,
        values=_values(len(rows), 6),
        json="::jsonb" if connection.vendor == "postgresql" else "",
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, [*_flat(rows), _adapt(now)])
        return {task_id for (task_id,) in cursor.fetchall()}


def _values(rows: int, columns: int) -> str:
    row = f"({', '.join(['%s'] * columns)})"
    return ", ".join([row] * rows)


def _flat(rows: Iterable[Sequence[Param | datetime]]) -> list[Param]:
    return [
        _adapt(value) if isinstance(value, datetime) else value for row in rows for value in row
    ]


def _adapt(moment: datetime) -> Param:
    adapted: Param = connection.ops.adapt_datetimefield_value(moment)
    return adapted


def _json(value: object) -> str | None:
    return None if value is None else json.dumps(value)
