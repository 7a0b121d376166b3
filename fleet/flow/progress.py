"""Take what agents tell while they work: starts, and output as it comes."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Sum
from django.db.models.functions import Length

from fleet.flow.turns import take_turn
from fleet.models import Command, OutputChunk
from fleet.models.writing import update_each
from fleet.rules.command_states import HELD, NO_LIMIT_KNOWN, OPEN, CommandState
from fleet.rules.report_items import MAX_OUTPUT, Chunk, Start
from scheduler.rules.contained import contained

_OPEN = [state.value for state in OPEN]


def note_progress(
    agent_id: int, starts: Sequence[Start], chunks: Sequence[Chunk], *, now: datetime
) -> frozenset[UUID]:
    """Store starts and pieces of output; return the commands that are not this agent's.

    Both are for people who watch: a report that is lost or spoilt loses no result.
    """
    named = {start.command for start in starts} | {chunk.command for chunk in chunks}
    if not named:
        return frozenset()
    mine = named
    with contained("progress could not be stored", agent=agent_id), transaction.atomic():
        take_turn(agent_id)
        commands = Command.objects.filter(agent=agent_id, pk__in=named).order_by("pk")
        rows = list(commands.select_for_update())
        mine = {row.pk for row in rows}
        held = {row.pk: row for row in rows if row.state in _OPEN}
        _start(held, starts, now)
        _append(held, chunks, now)
    return frozenset(named - mine)


def _start(held: dict[UUID, Command], starts: Iterable[Start], now: datetime) -> None:
    moved = {}
    for start in starts:
        command = held.get(start.command)
        # A start that comes after a later one, or after the end, opens nothing again.
        if command is not None and start.attempt > command.attempt:
            _note_start(command, start, now)
            moved[command.pk] = command
    update_each(moved.values(), ["state", "attempt", "started_at", "reap_at"])


def _note_start(command: Command, start: Start, now: datetime) -> None:
    command.state = CommandState.STARTED.value
    command.attempt = start.attempt
    if command.started_at is not None:
        return
    earliest = command.handed_out_at or command.created_at
    command.started_at = min(max(start.started_at or now, earliest), now)
    # Given up as long after its start as, until now, after the last moment to start.
    longest = command.reap_at - command.deadline_at if command.reap_at else NO_LIMIT_KNOWN
    command.reap_at = command.started_at + max(longest, timedelta(0))


def _append(held: dict[UUID, Command], chunks: Sequence[Chunk], now: datetime) -> None:
    wanted = [chunk for chunk in chunks if chunk.data and _is_held(held.get(chunk.command))]
    if not wanted:
        return
    kept = OutputChunk.objects.filter(command_id__in={chunk.command for chunk in wanted})
    sizes = kept.order_by().values_list("command_id").annotate(size=Sum(Length("data")))
    room = {command: MAX_OUTPUT - size for command, size in sizes}
    rows = []
    for chunk in wanted:
        left = room.get(chunk.command, MAX_OUTPUT) - len(chunk.data)
        if left >= 0:
            room[chunk.command] = left
            rows.append(_row(chunk, now))
    OutputChunk.objects.bulk_create(rows, ignore_conflicts=True)


def _is_held(command: Command | None) -> bool:
    return command is not None and CommandState(command.state) in HELD


def _row(chunk: Chunk, now: datetime) -> OutputChunk:
    return OutputChunk(
        command_id=chunk.command,
        stream=chunk.stream,
        offset=chunk.offset,
        data=chunk.data,
        received_at=now,
    )
