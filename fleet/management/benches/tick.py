"""The tick: what a large fire costs beside the bare rows, and what it costs to find nothing."""

import statistics
from collections.abc import Iterable

from django.db import connection
from django.utils import timezone

from fleet.flow.filling import fill_chunk
from fleet.flow.tick import tick
from fleet.management.benches.fleet_of import Pc, give_work, make_job, make_pcs
from fleet.management.benches.tick_rows import (
    RawCommands,
    add_history,
    add_schedule,
    forget_fires,
    set_due,
    settle_down,
)
from fleet.models import AgentPresence, Command, Execution, JobRevision, Schedule
from fleet.rules.execution_states import ExecutionState
from scheduler.management.benches.measuring import (
    ROUNDS,
    Report,
    Write,
    in_turn,
    scratch_database,
    seconds,
    synchronous_commit,
    tidy,
)

AGENTS, SMALL = 100_000, 1_000
# Of all agents so many are due, alive and free; of the rest 30 % are done and 10 % in flight.
DUE_SHARE = 0.6
MANY, SLOTS = 100, 100
IDLE_MS, MANY_IDLE_MS = 1.0, 5.0
IDLE_TICKS = 20


def run(
    *,
    write: Write,
    agents: int = AGENTS,
    history: int = 200_000,
    rounds: int = ROUNDS,
    **_options: object,
) -> bool:
    """Measure with so many agents and old results; return whether the goals are met."""
    report = Report("tick", write)
    with scratch_database(), synchronous_commit(on=False):
        job = make_job()
        pcs = make_pcs(few := min(SMALL, agents))
        _measure_idle(report, job, few)
        pcs += make_pcs(agents - few, first=few)
        _measure_idle(report, job, agents)
        _measure_fires(report, job, pcs, history, rounds)
    return report.is_ok


def _measure_idle(report: Report, job: JobRevision, count: int) -> None:
    """A tick that finds nothing, with one schedule and with many."""
    settle_down(add_schedule(job, 0))
    one = _median_tick()
    for number in range(1, MANY):
        settle_down(add_schedule(job, number, with_agents=False))
    many = _median_tick()
    Schedule.objects.all().delete()
    report.at_most(f"an idle tick, {count} agents / {IDLE_MS:g} ms", one / IDLE_MS, 1.0, ms=one)
    case = f"{MANY} idle schedules, {count} agents / {MANY_IDLE_MS:g} ms"
    report.at_most(case, many / MANY_IDLE_MS, 1.0, ms=many)


def _median_tick() -> float:
    tidy()
    _hear_everybody()
    for _ in range(3):
        tick(now=timezone.now())
    took = [seconds(lambda: tick(now=timezone.now())) for _ in range(IDLE_TICKS)]
    return statistics.median(took) * 1000


def _hear_everybody() -> None:
    AgentPresence.objects.update(last_seen_at=timezone.now())


def _measure_fires(
    report: Report, job: JobRevision, pcs: list[Pc], history: int, rounds: int
) -> None:
    agents = len(pcs)
    schedule = add_schedule(job, 0)
    keys = [pc.pk for pc in pcs]
    due = keys[: int(agents * DUE_SHARE)]
    give_work(job, pcs[int(agents * 0.9) :])
    raw = RawCommands(job, due)
    tidy()

    def fire() -> float:
        _begin(schedule, due)
        took = seconds(_fire)
        found = Command.objects.filter(schedule_id=schedule.pk).count()
        assert found == len(due), found
        return took

    def bare() -> float:
        _begin(schedule, due)
        return seconds(raw.write)

    ours, theirs = in_turn(fire, bare, rounds=rounds)
    on_postgres = connection.vendor == "postgresql"
    report.at_most(
        f"{len(due)} fires of {agents} agents / {'COPY' if on_postgres else 'executemany'}",
        ours / theirs,
        2.2 if on_postgres else 0.6,
        kanade_s=ours,
        raw_s=theirs,
        rounds=rounds,
    )
    add_history(job, keys, history)
    tidy()
    with_history = statistics.median(fire() for _ in range(rounds))
    report.at_most(
        f"the same with {history} old results / without",
        with_history / ours,
        1.15,
        with_history_s=with_history,
        without_s=ours,
    )
    _measure_capped(report, job, due)


def _begin(schedule: Schedule, due: Iterable[int]) -> None:
    """Everything as before the fire."""
    forget_fires(schedule)
    set_due(schedule, due)
    _hear_everybody()


def _fire() -> None:
    """A tick and what it leaves to a task of its own."""
    tick(now=timezone.now())
    planning = Execution.objects.filter(state=ExecutionState.PLANNING.value)
    for key in list(planning.values_list("pk", flat=True)):
        while fill_chunk(key, now=timezone.now()):
            pass


def _measure_capped(report: Report, job: JobRevision, due: list[int]) -> None:
    """With few free slots a tick costs what those few do, however many are due."""
    took = {}
    for count in (min(SMALL, len(due) // 2), len(due)):
        Command.objects.filter(reconciles=True).delete()
        busy = Command.objects.open().filter(job=job.job_id).count()
        Schedule.objects.all().delete()
        schedule = add_schedule(job, count, max_concurrent=busy + SLOTS)
        set_due(schedule, due[:count])
        _hear_everybody()
        tidy()
        took[count] = seconds(lambda: tick(now=timezone.now())) * 1000
        fired = Command.objects.filter(schedule_id=schedule.pk).count()
        assert fired == SLOTS, fired
    few, many = took
    report.at_most(
        f"a tick with {SLOTS} free slots, {many} due / {few} due",
        took[many] / took[few],
        2.0,
        ms=took[many],
        few_ms=took[few],
    )
