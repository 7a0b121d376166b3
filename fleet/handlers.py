"""Where the scheduler calls in: each kind of the fleet's tasks, and what recurs.

The clock of a fire is the runner's at its start; work that goes on for long reads it again.
"""

from dataclasses import asdict
from uuid import UUID

from django.utils import timezone

from fleet.flow import retention
from fleet.flow.auditing import audit_targets
from fleet.flow.filling import fill_chunk
from fleet.flow.sweep import sweep
from fleet.flow.targets import compute_targets
from fleet.flow.tick import look_at, tick
from fleet.flow.waves import release_wave
from scheduler.public import NOTHING, Fire, kind, pruner, recurring


@kind("fleet.tick")
def tick_all(fire: Fire) -> object:
    """Look at every schedule that may have something to do; each minute."""
    report = tick(now=fire.now)
    return NOTHING if report.did_nothing else asdict(report)


@kind("fleet.evaluate")
def evaluate_one(fire: Fire) -> object:
    """Look at the one schedule whose key the task bears, without waiting for the minute."""
    return {"fired": look_at(int(fire.key or 0), now=fire.now)}


@kind("fleet.fanout")
def fill(fire: Fire) -> object:
    """Write the commands of a large execution (its key), a chunk at a time, and publish it."""
    execution_id = UUID(fire.key or "")
    chunks = 1
    while fill_chunk(execution_id, now=timezone.now()):
        chunks += 1
    return {"chunks": chunks}


@kind("fleet.wave")
def release(fire: Fire) -> object:
    """Release one wave: its key is execution:number."""
    execution_id, _, number = (fire.key or "").rpartition(":")
    return {"released": release_wave(UUID(execution_id), int(number), now=fire.now)}


@kind("fleet.targets")
def compute(fire: Fire) -> object:
    """Make the rows of a schedule (its key) follow from its target, then look at it."""
    schedule_id = int(fire.key or 0)
    changed = compute_targets(schedule_id, now=fire.now)
    return {"changed": changed, "fired": look_at(schedule_id, now=timezone.now())}


@kind("fleet.cleanup")
def clean_up(fire: Fire) -> object:
    """End what waits in vain, put counters right."""
    return sweep(now=fire.now) or NOTHING


@kind("fleet.audit")
def audit(fire: Fire) -> object:
    """Compute the rows of every reconcile schedule anew: they are a cache of facts."""
    return audit_targets(now=fire.now) or NOTHING


pruner("results")(retention.prune_results)
pruner("output")(retention.prune_output)
pruner("executions")(retention.prune_executions)
pruner("evaluations")(retention.prune_evaluations)
pruner("occurrences")(retention.prune_occurrences)

recurring("fleet.tick", key="minute", cron="* * * * *", priority=50)
recurring("fleet.cleanup", key="cleanup", cron="*/5 * * * *", run_on_startup=True)
recurring("fleet.audit", key="audit", cron="40 3 * * *")
