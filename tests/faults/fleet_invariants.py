"""What holds in the fleet's tables whatever was killed: each a question that finds no row.

By SQL alone, so that no code of the fleet judges itself.
"""

from django.db import connection

OPEN = "('staged', 'queued', 'handed_out', 'started')"
HELD = "('handed_out', 'started')"
ANSWERED = "('succeeded', 'failed', 'timed_out', 'killed', 'refused', 'outcome_unknown')"

VIOLATIONS = {
    "I1 an execution is over only when nothing of it is open": f"""
        SELECT e.id FROM fleet_execution e JOIN fleet_command c ON c.execution_id = e.id
        WHERE e.state IN ('ended', 'cancelled') AND c.state IN {OPEN}""",
    "I1 what ended without its agent says why": """
        SELECT id FROM fleet_command WHERE reason = ''
        AND state IN ('expired', 'cancelled', 'skipped', 'outcome_unknown')""",
    "I1 planning has its task": """
        SELECT e.id FROM fleet_execution e WHERE e.state = 'planning' AND NOT EXISTS (
            SELECT 1 FROM scheduler_task t WHERE t.kind = 'fleet.fanout'
            AND t.state IN ('pending', 'running')
            AND replace(t.key, '-', '') = replace(CAST(e.id AS text), '-', ''))""",
    "I3 an answered command has its one result": f"""
        SELECT c.id FROM fleet_command c LEFT JOIN fleet_result r ON r.command_id = c.id
        WHERE c.state IN {ANSWERED} AND (r.command_id IS NULL OR r.outcome <> c.state)""",
    "I3 an open command has no result and a result no pieces": f"""
        SELECT c.id FROM fleet_command c JOIN fleet_result r ON r.command_id = c.id
        WHERE c.state IN {OPEN}
        UNION ALL SELECT o.command_id FROM fleet_outputchunk o
        JOIN fleet_result r ON r.command_id = o.command_id""",
    "I4 a nominal time is there once": """
        SELECT schedule_id FROM fleet_occurrence GROUP BY schedule_id, nominal_at
        HAVING count(*) > 1""",
    "I4 a nominal time has one execution": """
        SELECT schedule_id FROM fleet_execution WHERE nominal_at IS NOT NULL
        GROUP BY schedule_id, nominal_at HAVING count(*) > 1""",
    "I5 a number is given to one command of an agent": """
        SELECT agent_id FROM fleet_command WHERE seq > 0 GROUP BY agent_id, seq
        HAVING count(*) > 1""",
    "I6 a PC has one command of an execution": """
        SELECT execution_id FROM fleet_command WHERE execution_id IS NOT NULL
        GROUP BY execution_id, agent_id HAVING count(*) > 1""",
    "I6 a live execution has all that it planned": """
        SELECT e.id FROM fleet_execution e WHERE e.state IN ('live', 'ended') AND e.planned <>
        (SELECT count(*) FROM fleet_command c WHERE c.execution_id = e.id)""",
    "I6 a wave is out as a whole or not at all": """
        SELECT w.id FROM fleet_wave w JOIN fleet_command c
        ON c.execution_id = w.execution_id AND c.wave = w.number
        WHERE (w.state = 'released') = (c.state = 'staged')""",
    "I6 nothing went out of an execution that is not live": """
        SELECT c.id FROM fleet_command c JOIN fleet_execution e ON e.id = c.execution_id
        WHERE c.handed_out_at IS NOT NULL AND e.state IN ('planning', 'awaiting_approval')""",
    "I8 nothing went out after its deadline": """
        SELECT id FROM fleet_command WHERE handed_out_at > deadline_at""",
    "I9 a run by hand has its entry": """
        SELECT e.id FROM fleet_execution e WHERE e.origin = 'manual' AND e.reason LIKE 'run-%'
        AND (SELECT count(*) FROM scheduler_auditentry a
             WHERE a.action = 'run' AND a.reason = e.reason) <> 1""",
    "I11 slots that are taken are held": f"""
        SELECT j.id FROM fleet_job j WHERE j.slots_taken <> (
            SELECT count(*) FROM fleet_command c WHERE c.job_id = j.id AND c.holds_slot
            AND c.state IN {HELD})""",
    "I12 a revoked PC is given nothing": """
        SELECT c.id FROM fleet_command c JOIN fleet_agent a ON a.id = c.agent_id
        WHERE c.handed_out_at > a.revoked_at""",
}


def violations() -> dict[str, int]:
    """How many rows break each invariant, those that hold left out."""
    found = {}
    with connection.cursor() as cursor:
        for name, question in VIOLATIONS.items():
            cursor.execute(question.replace("%", "%%"), [])
            rows = cursor.fetchall()
            if rows:
                found[name] = len(rows)
    return found
