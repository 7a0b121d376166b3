"""Run again where it failed."""

from datetime import datetime

from fleet.models import Execution
from fleet.operations.running import run_job
from fleet.rules.command_states import FAILURES
from fleet.rules.manifest.fanout import MAX_PCS
from fleet.rules.refusals import Conflict
from scheduler.public import Actor

_FAILURES = [state.value for state in FAILURES]


def failed_pcs(execution: Execution) -> list[str]:
    """Return the uuids of the PCs on which it failed, at most one more than a target may name."""
    failed = execution.commands.filter(state__in=_FAILURES).order_by("agent_id")
    return list(failed.values_list("agent__uuid_text", flat=True)[: MAX_PCS + 1])


def run_again(
    execution: Execution,
    *,
    actor: Actor,
    now: datetime,
    reason: str = "",
    override_freeze: bool = False,
) -> Execution:
    """Run the job's current revision on the PCs where this execution failed.

    Conflict where it failed on none, or on more than one run may name; else as `run_job`.
    """
    pcs = failed_pcs(execution)
    if not pcs:
        raise Conflict("it failed on no PC")
    if len(pcs) > MAX_PCS:
        raise Conflict(f"it failed on more than {MAX_PCS} PCs; run the job on its groups")
    return run_job(
        execution.job,
        target={"pcs": pcs},
        actor=actor,
        now=now,
        reason=reason,
        override_freeze=override_freeze,
        params=execution.plan.get("params", {}),
    )
