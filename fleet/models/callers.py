"""An agent that calls, and its presence, in one statement each and without the ORM.

A fleet makes so many exchanges without news that composing their SQL anew each time is most of
what they cost. Everything else about agents goes through the models.
"""

from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from fleet.models.commands import OPEN_STATES
from fleet.models.freezes import read_flag
from fleet.rules.freeze import FreezeRecord
from fleet.rules.sessions import Session

# The list stands as in the partial index, or SQLite would not use that.
_OPEN = ", ".join(f"'{state}'" for state in OPEN_STATES)
_FIND = f"""
SELECT a.id, a.state, a.credential_hash, a.next_credential_hash, a.credential_at <= %s,
       a.fingerprint, a.epoch, a.boot_id, p.seq, a.schedules_etag,
       EXISTS (SELECT 1 FROM fleet_schedule l WHERE l.enabled AND l.runs_on_agent),
       EXISTS (SELECT 1 FROM fleet_command c
               WHERE c.agent_id = a.id AND c.state IN ({_OPEN}) AND c.state <> 'staged'),
       EXISTS (SELECT 1 FROM fleet_scheduleagent s
               WHERE s.agent_id = a.id AND s.parked_due_at IS NOT NULL),
       (SELECT count(*) FROM fleet_freeze), CAST(f.is_set AS text), f.starts, f.ends, f.reason, f.tz
FROM fleet_agent a
JOIN fleet_agentpresence p ON p.agent_id = a.id
LEFT JOIN fleet_freeze f ON f.id = 1
WHERE a.uuid_text = %s
"""  # noqa: S608  # constants of this module
_LOCK = """
SELECT a.state, a.epoch, p.handouts
FROM fleet_agentpresence p JOIN fleet_agent a ON a.id = p.agent_id
WHERE p.agent_id = %s
"""
_NOTE = """
UPDATE fleet_agentpresence SET last_seen_at = %s, seq = %s, skew_ms = %s WHERE agent_id = %s
"""


@dataclass(frozen=True, slots=True)
class Caller:
    """An agent with what an exchange without news needs, and the freeze as it is stored."""

    pk: int
    uuid: str
    state: str
    credential_hash: str
    next_credential_hash: str
    # Its credential is as old as the time that was asked about.
    is_due_for_rotation: bool
    session: Session
    # The bundle of schedules it has, and whether there are any that agents fire themselves.
    schedules_etag: str
    are_local_schedules: bool
    has_commands: bool
    is_parked: bool
    freeze: tuple[FreezeRecord, ...]


def find_caller(uuid: str, *, rotated_before: datetime) -> Caller | None:
    """Return the agent of that uuid, or None."""
    limit = connection.ops.adapt_datetimefield_value(rotated_before)
    with connection.cursor() as cursor:
        cursor.execute(_FIND, [limit, uuid])
        row = cursor.fetchone()
    if row is None:
        return None
    pk, state, kept, offered, old, fingerprint, epoch, boot_id, seq, *row = row
    etag, local, commands, parked, *freeze = row
    return Caller(
        pk=pk,
        uuid=uuid,
        state=state,
        credential_hash=kept,
        next_credential_hash=offered,
        is_due_for_rotation=bool(old),
        session=Session(fingerprint, epoch, boot_id, seq),
        schedules_etag=etag,
        are_local_schedules=bool(local),
        has_commands=bool(commands),
        is_parked=bool(parked),
        freeze=_records(*freeze),
    )


def note_presence(agent_id: int, *, seq: int, skew_ms: int, now: datetime) -> None:
    """Write down that the agent was heard: the only write of an exchange without news."""
    at = connection.ops.adapt_datetimefield_value(now)
    with connection.cursor() as cursor:
        cursor.execute(_NOTE, [at, seq, skew_ms, agent_id])


def lock_presence(agent_id: int) -> tuple[str, int, int] | None:
    """Lock the agent's presence until the transaction ends; return its state, epoch, handouts."""
    lock = " FOR UPDATE OF p" if connection.features.has_select_for_update else ""
    with connection.cursor() as cursor:
        cursor.execute(_LOCK + lock, [agent_id])
        found: tuple[str, int, int] | None = cursor.fetchone()
    return found


def _records(count: int, *columns: object) -> tuple[FreezeRecord, ...]:
    """Return as many records as there are rows, which should be one."""
    flag, starts, ends, reason, tz = columns
    return (FreezeRecord(read_flag(flag), starts or None, ends or None, reason, tz),) * count
