"""What the end of commands means for later: success facts, failures, and due times.

Whoever ends commands calls this in the same transaction, so that the tick finds every due time
in place and never looks at history.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from fleet.flow.manifests import schedule_manifest, terms_of
from fleet.models import JobAgent, ScheduleAgent, Shape
from fleet.models.writing import update_each
from fleet.rules.command_states import FAILURES, RUNS, CommandState
from fleet.rules.cooldown import Success
from fleet.rules.manifest import ManifestError
from fleet.rules.rearming import due_again

_Pair = tuple[int, int]
_FACTS = [
    "last_success_at",
    "last_success_version",
    "last_state",
    "last_version",
    "last_ended_at",
]


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
    """Keep how runs ended, count the failures, and put the machines' next due times.

    A late answer may come after a newer one: an older run never replaces a newer. A fixed number
    of queries for any number of commands.
    """
    if not commands:
        return
    ordered = sorted(commands, key=lambda command: command.ended_at)
    facts = _keep_facts(ordered)
    by_pair: dict[_Pair, list[Settled]] = {}
    for command in ordered:
        by_pair.setdefault((command.job_id, command.agent_id), []).append(command)
    rows = list(_rows_of(by_pair))
    for row in rows:
        pair = (row.schedule.job_id, row.agent_id)
        _count(row, by_pair[pair])
        _rearm(row, facts.get(pair), now)
    update_each(rows, ["due_at", "parked_due_at", "failures", "last_failed_at"])


def success_of(fact: JobAgent | None) -> Success | None:
    """The last success that a fact tells of."""
    if fact is None or fact.last_success_at is None:
        return None
    return Success(fact.last_success_at, fact.last_success_version)


def _keep_facts(commands: Sequence[Settled]) -> dict[_Pair, JobAgent]:
    """The facts of every pair, those of `commands` (in the order of their ends) written."""
    jobs = {command.job_id for command in commands}
    agents = {command.agent_id for command in commands}
    found = JobAgent.objects.filter(job__in=jobs, agent__in=agents)
    facts = {(fact.job_id, fact.agent_id): fact for fact in found}
    changed = set()
    for command in commands:
        pair = (command.job_id, command.agent_id)
        fact = facts.get(pair) or JobAgent(job_id=command.job_id, agent_id=command.agent_id)
        if command.state in RUNS and _note_run(fact, command):
            facts[pair] = fact
            changed.add(pair)
    JobAgent.objects.bulk_create(
        [_without_key(facts[pair]) for pair in sorted(changed)],
        update_conflicts=True,
        unique_fields=["job", "agent"],
        update_fields=_FACTS,
    )
    return facts


def _note_run(fact: JobAgent, command: Settled) -> bool:
    """Move the facts by one run; whether that changed anything."""
    changed = False
    # A real answer, however late, says more than that there was none.
    was_silent = fact.last_state == CommandState.OUTCOME_UNKNOWN
    newest = fact.last_ended_at is None or fact.last_ended_at <= command.ended_at
    if newest or was_silent:
        fact.last_state, fact.last_version = command.state.value, command.version
        fact.last_ended_at = command.ended_at
        changed = True
    last = fact.last_success_at
    if command.state is CommandState.SUCCEEDED and (last is None or last <= command.ended_at):
        fact.last_success_at, fact.last_success_version = command.ended_at, command.version
        changed = True
    return changed


def _without_key(fact: JobAgent) -> JobAgent:
    """A copy to insert: the unique pair, not the key, says whether it is there."""
    columns = {name: getattr(fact, name) for name in ("job_id", "agent_id", *_FACTS)}
    return JobAgent(**columns)


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
    for command in commands:
        if command.state is CommandState.SUCCEEDED:
            row.failures, row.last_failed_at = 0, None
        elif command.state in FAILURES and command.schedule_id == row.schedule_id:
            row.failures += 1
            row.last_failed_at = command.ended_at


def _rearm(row: ScheduleAgent, fact: JobAgent | None, now: datetime) -> None:
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
        success=success_of(fact),
        last_dispatched_at=row.last_dispatched_at,
        failures=row.failures,
        last_failed_at=row.last_failed_at,
        now=now,
    )
