"""What makes a command acceptable, in this order and no other.

Size and shape, signature, parse, ids, order, journal, time, script. Nothing of a payload is
believed before its signature holds, and the first check that fails names the reason.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from fleet.agent import envelope as envelopes
from fleet.agent import fields
from fleet.agent.commands import Command, Outcome, read_command, read_id
from fleet.agent.journal_records import Entry
from fleet.rules.deadlines import is_past
from scheduler.rules import strict_json
from scheduler.rules.durations import format_duration


@dataclass(frozen=True, slots=True)
class Pinned:
    """What the agent learned when it enrolled; the epoch rises when a backup was restored."""

    agent_id: str
    server_id: str
    server_epoch: int
    key: bytes


class Memory(Protocol):
    """What the journal knows."""

    def entry(self, command: str, /) -> Entry | None:
        """What is known of a command."""

    def may_have_forgotten(self, command: Command, /) -> bool:
        """Whether an unknown command may have been started once."""


@dataclass(frozen=True, slots=True)
class Accept:
    """The command may wait for its start."""

    command: Command


@dataclass(frozen=True, slots=True)
class Refuse:
    """The command never starts here; the server is told so."""

    command: str
    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class Known:
    """The command was dealt with before: the journal says how."""

    entry: Entry


@dataclass(frozen=True, slots=True)
class Ignore:
    """Not even an id can be read, so there is nobody to answer for."""

    reason: str


Verdict = Accept | Refuse | Known | Ignore


def examine(value: object, *, pinned: Pinned, memory: Memory, now: datetime) -> Verdict:
    """Judge what the server handed over (one item of `commands`) at the server's time `now`."""
    try:
        envelope = envelopes.read_envelope(value)
    except envelopes.EnvelopeError as error:
        return Ignore(str(error))
    try:
        payload = envelopes.open_envelope(
            envelope, expected_type=envelopes.COMMAND_TYPE, key=pinned.key
        )
        command = read_command(_parsed(payload))
    except (envelopes.EnvelopeError, fields.FieldError, strict_json.StrictJSONError) as error:
        return _refuse_unread(envelope.payload, str(error), memory)
    return _judge(command, pinned, memory, now)


def expired_reason(deadline_at: datetime, now: datetime) -> str:
    """What is said of a command whose deadline has passed."""
    late = format_duration(now - deadline_at)
    return f"the deadline {deadline_at.isoformat()} had passed at {now.isoformat()}, {late} late"


def _judge(command: Command, pinned: Pinned, memory: Memory, now: datetime) -> Verdict:
    reason = _stranger(command, pinned)
    if reason is not None:
        return Refuse(command.id, Outcome.REFUSED, reason)
    entry = memory.entry(command.id)
    if entry is not None and (entry.attempt or entry.finished):
        return Known(entry)
    if entry is None and memory.may_have_forgotten(command):
        return Refuse(
            command.id,
            Outcome.OUTCOME_UNKNOWN,
            "the journal has lost its memory of that time: it may have run, and is not started",
        )
    if is_past(command.deadline_at, now):
        return Refuse(command.id, Outcome.EXPIRED, expired_reason(command.deadline_at, now))
    digest = hashlib.sha256(command.script.text.encode()).hexdigest()
    if digest != command.script.sha256.lower():
        return Refuse(command.id, Outcome.REFUSED, "the script is not the one that was approved")
    return Accept(command)


def _stranger(command: Command, pinned: Pinned) -> str | None:
    """Why the command is not for this agent from this server as it is now."""
    if command.server_id != pinned.server_id:
        return "it was signed as another server"
    if command.agent_id != pinned.agent_id:
        return "it is for another agent"
    if command.server_epoch < pinned.server_epoch:
        return "it is older than the server's last restore"
    return None


def _refuse_unread(payload: bytes, reason: str, memory: Memory) -> Verdict:
    """Answer for a command that is not believed, where its id can be read and is new.

    The id comes from an unverified payload: it can only make this agent refuse, and never what
    the journal knows already.
    """
    try:
        command = read_id(_parsed(payload), "cmd_id")
    except (fields.FieldError, strict_json.StrictJSONError):
        return Ignore(reason)
    if memory.entry(command) is not None:
        return Ignore(f"{command}: {reason}")
    return Refuse(command, Outcome.REFUSED, reason)


def _parsed(payload: bytes) -> dict[str, object]:
    value = strict_json.loads(payload, max_bytes=envelopes.MAX_PAYLOAD_BYTES)
    if not isinstance(value, dict):
        raise fields.FieldError("a command is a JSON object")
    return value
