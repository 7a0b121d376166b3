"""Make the rows of (schedule, agent) follow from target, groups and successes, in chunks.

Who is due when is computed here by the same formula that results move it by, so that the tick
only compares times.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef

from fleet.flow.asking import ask_tick
from fleet.flow.manifests import schedule_manifest, terms_of
from fleet.flow.rosters import MEMBER_STATES, roster_of, roster_of_groups
from fleet.flow.settling import success_of
from fleet.models import Agent, Command, Evaluation, JobAgent, Schedule, ScheduleAgent, Shape
from fleet.models.writing import update_each
from fleet.rules.cooldown import Success
from fleet.rules.firing import Reason, Snapshot, standings
from fleet.rules.manifest import ManifestError, ScheduleManifest
from fleet.rules.rearming import Terms, due_again

# So many agents at a time: SQLite lets nobody else write meanwhile.
CHUNK = 1000
RECONCILE = [Shape.PER_PC.value, Shape.PER_TARGET.value]


def compute_targets(schedule_id: int, *, now: datetime) -> int:
    """Write, correct and delete the rows of a schedule until they are right; return how many
    changed.

    Each chunk is its own transaction; run again after a crash it finds less to do. The schedule
    is then looked at, unless somebody changed it meanwhile: whoever did asks again.
    """
    schedule = _schedule(schedule_id)
    if schedule is None:
        return 0
    changed, cursor = 0, 0
    while True:
        with transaction.atomic():
            hi = _end_of_chunk(cursor)
            changed += _compute_range(schedule, cursor, hi, now=now)
        if hi is None:
            break
        cursor = hi
    Schedule.objects.filter(pk=schedule_id, targets_dirty_at=schedule.targets_dirty_at).update(
        targets_dirty_at=None, look_at=now, held=False
    )
    return changed


def count_in(agent: Agent, *, now: datetime) -> int:
    """Write the rows of one agent under every schedule that means it; return how many are new.

    A new machine so becomes due without anybody computing the whole target again.
    """
    groups = list(agent.groups.values_list("slug", flat=True))
    schedules = Schedule.objects.filter(
        enabled=True, shape__in=RECONCILE, runs_on_agent=False
    ).select_related("job__current")
    meant = [one for one in schedules.iterator() if _means(one, agent, groups)]
    facts = {fact.job_id: success_of(fact) for fact in JobAgent.objects.filter(agent=agent)}
    rows = []
    for schedule in meant:
        terms = terms_of(schedule_manifest(schedule), schedule.job.current)
        due_at = _due(schedule, terms, facts.get(schedule.job_id), None, now)
        rows.append(ScheduleAgent(schedule=schedule, agent=agent, due_at=due_at))
    ScheduleAgent.objects.bulk_create(rows, ignore_conflicts=True)
    if rows:
        _wake_empty(row.schedule_id for row in rows)
        ask_tick(now=now)
    return len(rows)


def _wake_empty(schedules: Iterable[int]) -> None:
    """Let the schedules that stood still because they had no target fire again."""
    empty = Evaluation.objects.filter(
        schedule=OuterRef("pk"), until=None, reason=Reason.NO_TARGET.value
    )
    Schedule.objects.filter(Exists(empty), pk__in=list(schedules), held=True).update(held=False)


def correct_due_times(schedule_id: int, facts: Snapshot) -> int:
    """Put right the due times of candidates that today's facts do not want yet; return how many.

    Stored times follow the facts, so this finds something only after somebody changed rows by
    other means.
    """
    corrected = 0
    for candidate, stands in standings(facts):
        if stands.reason in {Reason.ALL_DONE, Reason.BACKING_OFF, Reason.MUTED}:
            corrected += ScheduleAgent.objects.filter(
                schedule=schedule_id, agent=candidate.agent, due_at=candidate.due_at
            ).update(due_at=stands.until)
    return corrected


def count_out(agent: Agent) -> int:
    """Delete the rows of an agent that is no member of anything any more; return how many."""
    gone, _ = ScheduleAgent.objects.filter(agent=agent).delete()
    return gone


def _schedule(schedule_id: int) -> Schedule | None:
    """The reconcile schedule that the server runs; others have no rows."""
    return (
        Schedule.objects.filter(pk=schedule_id, shape__in=RECONCILE, runs_on_agent=False)
        .select_related("job__current")
        .first()
    )


def _end_of_chunk(after: int) -> int | None:
    """The key of the last agent of the chunk that begins after `after`; None = the last chunk."""
    keys = Agent.objects.filter(pk__gt=after).order_by("pk").values_list("pk", flat=True)
    return keys[CHUNK - 1 : CHUNK].first()


@dataclass(frozen=True, slots=True)
class _Range:
    """What is stored about the agents of one chunk."""

    wanted: frozenset[int]
    rows: Mapping[int, ScheduleAgent]
    successes: Mapping[int, Success | None]
    busy: frozenset[int]


def _compute_range(schedule: Schedule, after: int, hi: int | None, *, now: datetime) -> int:
    manifest = schedule_manifest(schedule)
    terms = terms_of(manifest, schedule.job.current)
    found = _read_range(schedule, manifest, after, hi)
    gone = found.rows.keys() - found.wanted
    if gone:
        ScheduleAgent.objects.filter(schedule=schedule, agent__in=gone).delete()
    new, moved = [], []
    for agent in sorted(found.wanted):
        row = found.rows.get(agent)
        # In flight: whatever comes back will say when the agent is due again.
        busy = agent in found.busy
        due = None if busy else _due(schedule, terms, found.successes.get(agent), row, now)
        if row is None:
            new.append(ScheduleAgent(schedule=schedule, agent_id=agent, due_at=due))
        elif _is_moved(row, due, now):
            row.due_at, row.parked_due_at = due, None
            moved.append(row)
    ScheduleAgent.objects.bulk_create(new, ignore_conflicts=True)
    update_each(moved, ["due_at", "parked_due_at"])
    return len(gone) + len(new) + len(moved)


def _read_range(
    schedule: Schedule, manifest: ScheduleManifest, after: int, hi: int | None
) -> _Range:
    roster = (
        roster_of_groups(wave.group for wave in manifest.rollout.waves)
        if manifest.rollout is not None and schedule.shape == Shape.PER_TARGET
        else roster_of(manifest.target)
    ).filter(pk__gt=after)
    # Locked before the facts are read: no result and no dispatch moves a row in between.
    rows = (
        ScheduleAgent.objects.filter(schedule=schedule, agent__gt=after)
        .order_by("pk")
        .select_for_update()
    )
    facts = JobAgent.objects.filter(job=schedule.job_id, agent__gt=after)
    busy = Command.objects.open().filter(job=schedule.job_id, agent__gt=after)
    if hi is not None:
        roster = roster.filter(pk__lte=hi)
        rows, facts = rows.filter(agent__lte=hi), facts.filter(agent__lte=hi)
        busy = busy.filter(agent__lte=hi)
    return _Range(
        rows={row.agent_id: row for row in rows},
        wanted=frozenset(roster.values_list("pk", flat=True)),
        successes={fact.agent_id: success_of(fact) for fact in facts},
        busy=frozenset(busy.values_list("agent_id", flat=True)),
    )


def _due(
    schedule: Schedule,
    terms: Terms,
    success: Success | None,
    row: ScheduleAgent | None,
    now: datetime,
) -> datetime | None:
    """When the agent is due: now where it has waited already; None = never, or not its own."""
    if schedule.shape != Shape.PER_PC:
        return None
    due = due_again(
        terms,
        success=success,
        last_dispatched_at=row.last_dispatched_at if row else None,
        failures=row.failures if row else 0,
        last_failed_at=row.last_failed_at if row else None,
        now=now,
    )
    return max(due, now) if due is not None else None


def _is_moved(row: ScheduleAgent, due: datetime | None, now: datetime) -> bool:
    """Whether the stored time is wrong. Who is due already, or parked, keeps its place."""
    stored = row.due_at or row.parked_due_at
    if due is not None and due <= now and stored is not None and stored <= now:
        return False
    return stored != due


def _means(schedule: Schedule, agent: Agent, groups: list[str]) -> bool:
    if agent.state not in MEMBER_STATES:
        return False
    try:
        manifest = schedule_manifest(schedule)
    except ManifestError:
        # The tick says so about the schedule.
        return False
    if manifest.rollout is not None and schedule.shape == Shape.PER_TARGET:
        named = {wave.group.casefold() for wave in manifest.rollout.waves}
        return any(group.casefold() in named for group in groups)
    return manifest.target.matches(agent.name, groups, uuid=agent.uuid_text)
