"""Hand commands to the agent that asks, if every gate is open at that moment.

The freeze is read in the transaction that moves the commands, in a way that a freeze cannot be set
meanwhile: once somebody was told "frozen", nothing more goes out. What was handed out and did not
arrive goes out again, through the same gates.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F

from fleet.agent.envelope import COMMAND_TYPE
from fleet.flow.closing import Ending, close
from fleet.flow.freeze import read_freeze
from fleet.flow.manifests import job_manifest
from fleet.flow.payloads import command_payload
from fleet.flow.signing import Signer, server_signer
from fleet.flow.turns import Turn, take_turn
from fleet.models import AgentPresence, AgentState, Command, Job
from fleet.models.handouts import move_to_agent
from fleet.rules.command_states import CommandState, give_up_at
from fleet.rules.execution_states import ExecutionState
from fleet.rules.freeze import FreezeState
from fleet.rules.handing_out import End, Give, Offer, judge
from fleet.rules.manifest import JobManifest, ManifestError
from fleet.rules.retries import RetryPolicy

# More at once makes a long transaction; the rest follows at once.
MOST_COMMANDS = 50
UNREADABLE_JOB = "the stored job cannot be read"
# What the gates, the payload and an end need to know; each column more costs every hand-out.
_COLUMNS = (
    "agent_id",
    "job_id",
    "schedule_id",
    "state",
    "seq",
    "deadline_at",
    "start_after",
    "handed_out_at",
    "kill_requested_at",
    "override_freeze",
    "max_concurrent",
    "holds_slot",
    "agent__uuid_text",
    "execution__state",
    "execution__plan",
    "job__slug",
    "job__revoked_at",
    "job__current__execute_sha256",
    "revision__sha256",
    "revision__execute_sha256",
    "revision__manifest",
    "revision__version",
    "revision__requires_approval",
    "revision__approved_at",
)
_ASKED = [CommandState.QUEUED.value, CommandState.HANDED_OUT.value]


class HandOutLostError(Exception):
    """Somebody else moved a command in spite of its lock: nothing goes out, ask again."""


@dataclass(slots=True)
class Delivery:
    """Envelopes (JSON-like) in the order of their numbers; `more` = there is more to come."""

    freeze: FreezeState
    envelopes: list[dict[str, object]] = field(default_factory=list)
    more: bool = False


def deliver(agent_id: int, *, in_hand: frozenset[UUID], most_bytes: int, now: datetime) -> Delivery:
    """Hand out what may go to this agent and is not in its hands, up to a size of reply.

    A fixed number of queries, and one for each slot of a `max_concurrent`.
    """
    with transaction.atomic():
        turn = take_turn(agent_id)
        freeze = read_freeze(now, lock=True)
        delivery = Delivery(freeze)
        if turn.state is not AgentState.ACTIVE:
            return delivery
        commands = _asked_for(agent_id, in_hand)
        delivery.more = len(commands) > MOST_COMMANDS
        going, endings = _judged(commands[:MOST_COMMANDS], freeze, now)
        if going:
            endings += _hand_out(going, turn, delivery, most_bytes=most_bytes, now=now)
        close(endings, now=now)
    return delivery


def _asked_for(agent_id: int, in_hand: frozenset[UUID]) -> list[Command]:
    """Return, locked, what is queued and what went out and did not arrive; that one first."""
    query = (
        # What the agent fired by itself it has from nobody.
        Command.objects.filter(agent=agent_id, state__in=_ASKED, local_id=None)
        .exclude(pk__in=in_hand)
        .select_related("agent", "execution", "job__current", "revision")
        .only(*_COLUMNS)
        .order_by("-seq", "pk")
    )
    rows = list(query.select_for_update(of=("self",))[: MOST_COMMANDS + 1])
    # A hand-out has a number above none; in the order of the numbers the agent gets them.
    return sorted(rows, key=lambda row: (row.seq == 0, row.seq, row.pk))


def _judged(
    commands: Sequence[Command], freeze: FreezeState, now: datetime
) -> tuple[list[Command], list[Ending]]:
    going, endings = [], []
    for command in commands:
        match judge(_offer(command), frozen=freeze.frozen, now=now):
            case Give():
                going.append(command)
            case End(state, reason):
                endings.append(Ending(command, state, reason, now))
            case _:
                # It is held, and asked about again.
                continue
    return going, endings


def _offer(command: Command) -> Offer:
    job, revision, execution = command.job, command.revision, command.execution
    current = job.current
    return Offer(
        deadline_at=command.deadline_at,
        is_stopped=command.kill_requested_at is not None,
        is_revoked=job.revoked_at is not None,
        is_current=current is not None and current.execute_sha256 == revision.execute_sha256,
        is_approved=not revision.requires_approval or revision.approved_at is not None,
        is_live=execution is not None and execution.state == ExecutionState.LIVE,
        overrides_freeze=command.override_freeze,
    )


def _hand_out(
    commands: Sequence[Command],
    turn: Turn,
    delivery: Delivery,
    *,
    most_bytes: int,
    now: datetime,
) -> list[Ending]:
    """Number, sign and move commands; return those that end instead."""
    signer = server_signer()
    moved: list[Command] = []
    endings: list[Ending] = []
    left = most_bytes
    for command in commands:
        is_new = command.state == CommandState.QUEUED
        try:
            manifest = job_manifest(command.revision)
        except ManifestError:
            endings.append(Ending(command, CommandState.SKIPPED, UNREADABLE_JOB, now))
            continue
        if is_new:
            _number(command, manifest, turn.handouts + len(moved) + 1, turn, now)
        envelope, size = _enveloped(command, signer)
        if size > left and delivery.envelopes:
            delivery.more = True
            break
        if is_new:
            if not _take_slot(command):
                continue
            moved.append(command)
        left -= size
        delivery.envelopes.append(envelope)
    _save(moved, turn)
    return endings


def _number(
    command: Command, manifest: JobManifest, number: int, turn: Turn, now: datetime
) -> None:
    """Make the command one that went out now, as the agent's `number`-th."""
    plan = command.execution.plan if command.execution else {}
    kept = plan.get("retry")
    retry = RetryPolicy(kept["max"], timedelta(seconds=kept["backoff_s"])) if kept else None
    timeout = manifest.execute.timeout
    command.seq = number
    command.handed_out_at = now
    command.handed_out_epoch = turn.epoch
    command.reap_at = give_up_at(
        command.deadline_at, timeout, retries=retry.budget(timeout) if retry else timedelta(0)
    )


def _enveloped(command: Command, signer: Signer) -> tuple[dict[str, object], int]:
    envelope = signer.envelope(COMMAND_TYPE, command_payload(command, signer))
    return envelope, len(json.dumps(envelope)) + 2


def _take_slot(command: Command) -> bool:
    """Take one of the job's slots if the command needs one; False when all are taken."""
    if command.max_concurrent is None:
        return True
    free = Job.everything.filter(pk=command.job_id, slots_taken__lt=command.max_concurrent)
    command.holds_slot = bool(free.update(slots_taken=F("slots_taken") + 1))
    return command.holds_slot


def _save(moved: Sequence[Command], turn: Turn) -> None:
    if not moved:
        return
    if move_to_agent(moved) != len(moved):
        raise HandOutLostError
    presence = AgentPresence.objects.filter(pk=turn.agent_id)
    presence.update(handouts=turn.handouts + len(moved))
