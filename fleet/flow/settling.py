"""What the end of commands means for later: success facts, failures, and due times.

Whoever ends commands calls this in the same transaction, so that the tick finds every due time
in place and never looks at history.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from fleet.flow.manifests import schedule_manifest, terms_of
from fleet.models import JobAgent, ScheduleAgent, Shape
from fleet.rules.command_states import FAILURES, CommandState
from fleet.rules.cooldown import Success
from fleet.rules.manifest import ManifestError
from fleet.rules.rearming import due_again

_Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Settled:
    """A command that has ended; `ended_at` by the server's clock."""

    job_id: int
    agent_id: int
    schedule_id: int | None
    state: CommandState
    version: str
    ended_at: datetime


def settle(commands: Sequence[Settled], *, now: datetime) -> None:
    """Keep the successes, count the failures, and put the machines' next due times.

    A late answer may come after a newer one: an older success never replaces a newer. A fixed
    number of queries for any number of commands.
    """
    if not commands:
        return
    successes = _keep_successes(commands)
    by_pair: dict[_Pair, list[Settled]] = {}
    for command in commands:
        by_pair.setdefault((command.job_id, command.agent_id), []).append(command)
    rows = list(_rows_of(by_pair))
    for row in rows:
        pair = (row.schedule.job_id, row.agent_id)
        _count(row, by_pair[pair])
        _rearm(row, successes.get(pair), now)
    ScheduleAgent.objects.bulk_update(
        rows, ["due_at", "parked_due_at", "failures", "last_failed_at"], batch_size=500
    )


def _keep_successes(commands: Sequence[Settled]) -> dict[_Pair, Success]:
    """The newest success of every pair, those of `commands` written."""
    jobs = {command.job_id for command in commands}
    agents = {command.agent_id for command in commands}
    found = JobAgent.objects.filter(job__in=jobs, agent__in=agents)
    known = {
        (row.job_id, row.agent_id): Success(row.last_success_at, row.last_success_version)
        for row in found
    }
    newer: dict[_Pair, Success] = {}
    for command in commands:
        pair = (command.job_id, command.agent_id)
        last = newer.get(pair) or known.get(pair)
        if command.state is CommandState.SUCCEEDED and (
            last is None or last.at <= command.ended_at
        ):
            newer[pair] = Success(command.ended_at, command.version)
    JobAgent.objects.bulk_create(
        [
            JobAgent(
                job_id=job,
                agent_id=agent,
                last_success_at=success.at,
                last_success_version=success.version,
            )
            for (job, agent), success in sorted(newer.items())
        ],
        update_conflicts=True,
        unique_fields=["job", "agent"],
        update_fields=["last_success_at", "last_success_version"],
    )
    return known | newer


def _rows_of(pairs: Iterable[_Pair]) -> Iterable[ScheduleAgent]:
    wanted = set(pairs)
    rows = ScheduleAgent.objects.filter(
        schedule__job__in={job for job, _ in wanted}, agent__in={agent for _, agent in wanted}
    ).select_related("schedule__job__current")
    # Locked in one order, so that two exchanges never wait for each other.
    for row in rows.order_by("pk").select_for_update(of=("self",)):
        if (row.schedule.job_id, row.agent_id) in wanted:
            yield row


def _count(row: ScheduleAgent, commands: Iterable[Settled]) -> None:
    """Failures in a row: of this schedule's own runs, reset by any success of the job."""
    for command in sorted(commands, key=lambda one: one.ended_at):
        if command.state is CommandState.SUCCEEDED:
            row.failures, row.last_failed_at = 0, None
        elif command.state in FAILURES and command.schedule_id == row.schedule_id:
            row.failures += 1
            row.last_failed_at = command.ended_at


def _rearm(row: ScheduleAgent, success: Success | None, now: datetime) -> None:
    row.due_at = row.parked_due_at = None
    if row.schedule.shape != Shape.PER_PC:
        return
    try:
        terms = terms_of(schedule_manifest(row.schedule), row.schedule.job.current)
    except ManifestError:
        # The tick says so about the schedule; a result must be kept whatever is stored there.
        return
    row.due_at = due_again(
        terms,
        success=success,
        last_dispatched_at=row.last_dispatched_at,
        failures=row.failures,
        last_failed_at=row.last_failed_at,
        now=now,
    )
