"""Take results: the command ends, its slot is free, facts and due times move, output is kept.

Exactly once, however often a result comes. The results of one exchange are one transaction; when
one of them cannot be stored, each becomes its own, and the others are stored all the same.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import F

from fleet.flow.closing import Ending, close, locked
from fleet.flow.settling import Settled, settle
from fleet.flow.turns import take_turn
from fleet.models import Command, Output, OutputChunk, Result, Stream
from fleet.models.writing import update_each
from fleet.rules.command_states import WAITING, CommandState
from fleet.rules.report_fields import within_reason
from fleet.rules.report_items import Captured
from fleet.rules.report_items import Result as Report
from fleet.rules.verdicts import Store, Stored, Verdict, judge_result
from scheduler.rules.contained import contained

logger = logging.getLogger(__name__)

Verdicts = dict[UUID, Verdict]


@dataclass(frozen=True, slots=True)
class _Taken:
    """A result that is to be stored, with its command (locked)."""

    report: Report
    command: Command
    store: Store


def collect(agent_id: int, reports: Sequence[Report], *, now: datetime) -> Verdicts:
    """Store an agent's results; return the verdict on each that could be dealt with."""
    verdicts: Verdicts = {}
    if not reports:
        return verdicts
    with contained("results could not be stored together", agent=agent_id):
        verdicts |= _store(agent_id, reports, now)
    if verdicts:
        return verdicts
    # A database that is gone raises here, and does not pass for a fault of the results.
    with transaction.atomic():
        take_turn(agent_id)
    for report in reports:
        with contained("a result could not be stored", command=str(report.command)):
            verdicts |= _store(agent_id, [report], now)
    return verdicts


def _store(agent_id: int, reports: Sequence[Report], now: datetime) -> Verdicts:
    with transaction.atomic():
        take_turn(agent_id)
        wanted = Command.objects.filter(agent=agent_id, pk__in=[one.command for one in reports])
        commands = {command.pk: command for command in locked(wanted)}
        known = Result.objects.in_bulk(commands)
        stored = {
            pk: Stored(row.report_sha256, is_stand_in=row.reaped) for pk, row in known.items()
        }
        verdicts: Verdicts = {}
        taken: list[_Taken] = []
        for report in reports:
            command = commands.get(report.command)
            judged = _judge(command, report, stored)
            if command is not None and isinstance(judged, Store):
                taken.append(_Taken(report, command, judged))
                # The same command a second time in one exchange meets the first one.
                stored[command.pk] = Stored(report.digest, is_stand_in=False)
                judged = Verdict.STORED
            assert isinstance(judged, Verdict)
            verdicts[report.command] = judged
        _write(taken, now)
        _count_conflicts([pk for pk, verdict in verdicts.items() if verdict is Verdict.CONFLICT])
    return verdicts


def _judge(command: Command | None, report: Report, stored: dict[UUID, Stored]) -> Store | Verdict:
    if command is None:
        return Verdict.UNKNOWN
    return judge_result(
        CommandState(command.state),
        stored.get(command.pk),
        outcome=report.outcome,
        digest=report.digest,
    )


def _write(taken: Sequence[_Taken], now: datetime) -> None:
    if not taken:
        return
    keys = [one.command.pk for one in taken]
    # What stood in for an answer gives way to the answer.
    if any(one.store.late for one in taken):
        Result.objects.filter(pk__in=keys, reaped=True).delete()
    Result.objects.bulk_create([_result(one, now) for one in taken])
    OutputChunk.objects.filter(command_id__in=keys).delete()
    Output.objects.bulk_create([row for one in taken for row in _outputs(one, now)])
    _catch_up([one for one in taken if one.store.ends_as is not None])
    endings = [
        Ending(one.command, one.store.ends_as, one.report.reason, _ended_at(one, now))
        for one in taken
        if one.store.ends_as is not None
    ]
    close(endings, now=now)
    settle([_fact(one, now) for one in taken if _is_fact_alone(one)], now=now)


def _catch_up(taken: Sequence[_Taken]) -> None:
    """Bring commands up to their last start, where its report was lost or comes with the result."""
    behind = []
    for one in taken:
        command, report = one.command, one.report
        if CommandState(command.state) in WAITING:
            command.state = CommandState.HANDED_OUT.value
        started_at = command.started_at or report.started_at
        if (command.attempt, command.started_at) != (report.attempt, started_at):
            command.attempt, command.started_at = report.attempt, started_at
            behind.append(command)
    update_each(behind, ["attempt", "started_at"])


def _result(one: _Taken, now: datetime) -> Result:
    command, report = one.command, one.report
    return Result(
        command_id=command.pk,
        execution_id=command.execution_id,
        agent_id=command.agent_id,
        job_id=command.job_id,
        schedule_id=command.schedule_id,
        job_version=command.revision.version,
        revision_id=command.revision_id,
        attempt=report.attempt,
        retries=report.retries,
        outcome=report.outcome.value,
        exit_code=report.exit_code,
        reason=report.reason,
        note=report.note,
        started_at=within_reason(report.started_at, now),
        finished_at=within_reason(report.finished_at, now),
        duration_ms=report.duration_ms,
        received_at=now,
        late=one.store.late,
        report_sha256=report.digest,
        code_page=report.code_page,
    )


def _outputs(one: _Taken, now: datetime) -> list[Output]:
    streams: list[tuple[Stream, Captured]] = [
        (Stream.STDOUT, one.report.stdout),
        (Stream.STDERR, one.report.stderr),
    ]
    return [
        Output(
            command_id=one.command.pk,
            stream=stream,
            head=part.head,
            tail=part.tail,
            total=part.total,
            sha256=part.sha256,
            received_at=now,
        )
        for stream, part in streams
        if part.total
    ]


def _ended_at(one: _Taken, now: datetime) -> datetime:
    """When it ended, by the server's clock as the PC knows it, and never before it was asked."""
    told = one.report.finished_at or now
    return min(max(told, one.command.created_at), now)


def _is_fact_alone(one: _Taken) -> bool:
    """A success of a command that had ended for good moves no state, and is true all the same."""
    return one.store.ends_as is None and one.report.outcome is CommandState.SUCCEEDED


def _fact(one: _Taken, now: datetime) -> Settled:
    return Settled(
        job_id=one.command.job_id,
        agent_id=one.command.agent_id,
        schedule_id=one.command.schedule_id,
        state=CommandState.SUCCEEDED,
        version=one.command.revision.version,
        ended_at=_ended_at(one, now),
    )


def _count_conflicts(keys: Sequence[UUID]) -> None:
    if keys:
        Result.objects.filter(pk__in=keys).update(conflicts=F("conflicts") + 1)
        logger.warning("a second, different result was refused", extra={"commands": len(keys)})
