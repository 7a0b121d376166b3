"""Taking tasks: one statement that moves the first due rows to a runner, on both databases.

The ORM cannot say UPDATE … RETURNING, so it writes the SELECT and this module the rest.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import connection
from django.db.models import QuerySet
from django.db.models.functions import Now

from scheduler.models.batches import table
from scheduler.models.tasks import Task
from scheduler.rules.claims import Claim
from scheduler.rules.fire import Retry
from scheduler.rules.misfire import Misfire
from scheduler.rules.timing import Recurrence

# Times as text: Python reads its own format many times faster than the driver reads a timestamp.
_RETURNED = (
    "id, lease_token, kind, key, input, priority, CAST(due_at AS text), "
    "CAST(not_before AS text), attempt, CAST(occurrence_at AS text), extra, "
    "COALESCE(cron_override, cron), tz, day_rule, misfire, retry_times, retry_min, retry_max, "
    "retry_count, generation"
)
# Both databases know CTEs, UPDATE … FROM and RETURNING; SKIP LOCKED is PostgreSQL's alone, and
# SQLite has one writer. The state is asked again outside: it decides who wins. `ready` is not: by
# that PostgreSQL, when it thinks that few are, walks through all of them for each that it takes.
_CLAIM = """
WITH due(due_id) AS MATERIALIZED ({select}{lock})
UPDATE scheduler_task
SET state = 'running', ready = false, lease_token = lease_token + 1, beat = beat + 1,
    beat_at = {now}, runner_id = %s, started_at = %s, updated_at = %s, body_started = %s,
    attempt = attempt + 1, runs = runs + 1
FROM due
WHERE id = due_id AND state = 'pending'
RETURNING {returned}
"""

_CHOOSE = """
WITH chosen(task, token, occurrence_at, missed) AS ({rows})
UPDATE scheduler_task SET occurrence_at = chosen.occurrence_at, missed = chosen.missed
FROM chosen
WHERE id = chosen.task AND state = 'running' AND lease_token = chosen.token
"""

_MISFIRES = {one.value: one for one in Misfire}
# Stands for the time of the look in a selection that is compiled once.
_ANY_MOMENT = datetime(1, 1, 2, 3, 4, 5, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which tasks to take, and how many: compiled once, used for every look."""

    select: str
    claim: str
    params: tuple[object, ...]

    def is_empty(self, until: datetime) -> bool:
        """Whether there is nothing to take that is due by then."""
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT EXISTS ({self.select})", self._params(until))
            return not cursor.fetchone()[0]

    def take(self, until: datetime, *, runner_id: int, now: datetime, started: bool) -> list[Claim]:
        """Claim what is due by then for a runner, in claim order.

        `started` says that the bodies are handed to workers at once.
        """
        moment = adapted(now)
        with connection.cursor() as cursor:
            cursor.execute(self.claim, [*self._params(until), runner_id, moment, moment, started])
            claims = [_claim(row, now) for row in cursor.fetchall()]
        return sorted(claims, key=_claim_order)

    def _params(self, until: datetime) -> list[Any]:
        moment, anything = adapted(until), adapted(_ANY_MOMENT)
        return [moment if param == anything else param for param in self.params]


def select(candidates: Callable[[datetime], QuerySet[Task]], limit: int) -> Selection:
    """Compile the first `limit` tasks of a query that is told until when they are due."""
    rows = candidates(_ANY_MOMENT).values("id")[:limit]
    sql, params = rows.query.sql_with_params()
    skip = connection.features.has_select_for_update_skip_locked
    claim = _CLAIM.format(
        select=sql,
        lock=" FOR UPDATE SKIP LOCKED" if skip else "",
        now=database_now(),
        returned=_RETURNED,
    )
    return Selection(sql, claim, tuple(params))


@dataclass(frozen=True, slots=True)
class Choice:
    """For which of its missed occurrences a claimed task runs, and how many it gives up."""

    task_id: int
    token: int
    occurrence_at: datetime
    missed: int


def choose(choices: Sequence[Choice]) -> None:
    """Write down for which occurrences tasks run, where their lease still holds."""
    if not choices:
        return
    rows = [(one.task_id, one.token, one.occurrence_at, one.missed) for one in choices]
    source, params = table(rows, ("bigint", "bigint", "timestamptz", "integer"))
    with connection.cursor() as cursor:
        cursor.execute(_CHOOSE.format(rows=source), params)


def adapted(moment: datetime) -> Any:
    """Return a time as a parameter of this database."""
    return connection.ops.adapt_datetimefield_value(moment)


def _claim_order(one: Claim) -> tuple[int, datetime, int]:
    return -one.priority, one.due_at, one.task_id


def database_now() -> str:
    """Return the SQL for the database's own clock, as the ORM writes it, ready for parameters."""
    compiler = Task.objects.all().query.get_compiler(connection=connection)
    sql, _ = compiler.compile(Now())
    return str(sql)


def _claim(row: Sequence[Any], now: datetime) -> Claim:
    (task_id, token, kind, key, payload, priority, due_at, not_before, attempt, occurrence_at,
     extra, cron, tz, day_rule, misfire, times, least, most, count, generation) = row  # fmt: skip
    due = moment_of(due_at)
    assert due is not None  # a ready task has a due time
    return Claim(
        task_id=task_id,
        token=token,
        kind=kind,
        key=key,
        input=None if payload is None else json.loads(payload),
        priority=priority,
        due_at=due,
        not_before=None if not_before is None else moment_of(not_before),
        attempt=attempt,
        occurrence_at=None if occurrence_at is None else moment_of(occurrence_at),
        extra=bool(extra),
        recurrence=None if cron is None else Recurrence(cron, tz, day_rule),
        misfire=_MISFIRES[misfire],
        retry=None if times is None else Retry(times, least, most),
        retry_count=count,
        generation=generation,
        started_at=now,
    )


def moment_of(value: object) -> datetime | None:
    """Read a timestamp, which may be a text; SQLite keeps a naive one in UTC."""
    if value is None:
        return None
    found = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
