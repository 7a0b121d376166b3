"""What has to be true of the core's tables at any moment, and once everything was done.

In SQL and from the lines that bodies wrote: nothing here asks the code that is under test.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from django.db import connection

LIVE = "('pending', 'running', 'quarantined')"
# Each finds tasks of which something is so that may never be.
NEVER: Mapping[str, str] = {
    "waits for what is over": f"""
        SELECT d.task_id FROM scheduler_dependency d JOIN scheduler_task t ON t.id = d.dependency_id
        WHERE t.state NOT IN {LIVE}""",
    "is over and still waits": f"""
        SELECT d.task_id FROM scheduler_dependency d JOIN scheduler_task t ON t.id = d.task_id
        WHERE t.state NOT IN {LIVE}""",
    "counts its edges wrongly": """
        SELECT t.id FROM scheduler_task t WHERE t.waits_for <>
            (SELECT COUNT(*) FROM scheduler_dependency d WHERE d.task_id = t.id)""",
    "finished without history": """
        SELECT t.id FROM scheduler_task t WHERE t.state = 'finished' AND NOT EXISTS
            (SELECT 1 FROM scheduler_run r WHERE r.task_id = t.id AND r.outcome = 'succeeded')""",
    "runs under a lease whose end is written": """
        SELECT t.id FROM scheduler_task t JOIN scheduler_run r
            ON r.task_id = t.id AND r.lease_token = t.lease_token WHERE t.state = 'running'""",
    "succeeded twice for one occurrence": """
        SELECT task_id FROM scheduler_run WHERE outcome = 'succeeded' AND occurrence_at IS NOT NULL
        GROUP BY task_id, occurrence_at HAVING COUNT(*) > 1""",
    "has history under another name": """
        SELECT t.id FROM scheduler_task t JOIN scheduler_run r ON r.task_id = t.id
        WHERE r.kind <> t.kind OR r.key <> t.key""",
    "ended before it began": """
        SELECT task_id FROM scheduler_run WHERE ended_at < started_at""",
    # The attempt is counted by the claim, and each claim is ended once.
    "was claimed more or less often than it ran": """
        SELECT t.id FROM scheduler_task t WHERE t.runs <>
            (SELECT COUNT(*) FROM scheduler_run r
             WHERE r.task_id = t.id AND r.outcome NOT IN ('missed', 'not run'))
            + CASE WHEN t.state = 'running' THEN 1 ELSE 0 END""",
}
_ALL = " UNION ALL ".join(
    f"SELECT '{name}', n.* FROM ({query}) AS n"  # constants
    for name, query in NEVER.items()
)
# Leases that nobody freed, and hooks that nobody called.
_HELD = "SELECT key FROM scheduler_task WHERE state = 'running' OR hook_run IS NOT NULL"


def violations() -> dict[str, list[int]]:
    """Which tasks break which rule, if only for a moment after a kill; empty if all is well."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for what, task in _rows(_ALL):
        found[str(what)].append(int(str(task)))
    return dict(found)


def unfinished(expected: Mapping[str, str]) -> dict[str, str]:
    """Tasks, by key, that are not in the state that a recovery has to bring them to."""
    states = {str(key): str(state) for key, state in _rows("SELECT key, state FROM scheduler_task")}
    return {
        key: f"{states.get(key)} instead of {expected.get(key)}"
        for key in states.keys() | expected.keys()
        if states.get(key) != expected.get(key)
    }


def held() -> list[str]:
    """What somebody is still supposed to be at."""
    return [str(key) for (key,) in _rows(_HELD)]


def _rows(query: str) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())


def overlaps(lines: Sequence[str], dead: int | None) -> list[str]:
    """Bodies of one key, or of the narrow queue, that were inside at the same time.

    `dead` is the process that was killed: what it began, it need not have ended.
    """
    inside: dict[str, str] = {}
    found = []
    for line in lines:
        word, key = line.split()[:2]
        room = "narrow" if key.startswith("narrow") else key
        if word == "begin":
            if room in inside and int(inside[room].split()[3]) != dead:
                found.append(f"{inside[room]} | {line}")
            inside[room] = line
        elif word == "end":
            inside.pop(room, None)
    return found
