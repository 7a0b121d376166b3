"""From a decision about a schedule to the plan of its dispatch."""

from datetime import datetime

from fleet.flow.evaluate import Evaluated
from fleet.flow.plans import (
    Chosen,
    DispatchPlan,
    DueAgents,
    LiveMembers,
    Selection,
    WholeTarget,
)
from fleet.models import Origin
from fleet.rules.deadlines import wait_for_start
from fleet.rules.fanout import Timetable
from fleet.rules.firing import Dispatch
from fleet.rules.when import Calendar, PerPc, PerTarget

SCHEDULER = "scheduler"


def plan_of(
    found: Evaluated, decided: Dispatch, *, nominal_at: datetime | None = None
) -> DispatchPlan:
    """The plan of one fire of a schedule, by the tick or (`facts.by_hand`) by a person.

    The job has a revision that may run: the decision has seen to that.
    """
    manifest, facts, revision = found.manifest, found.facts, found.revision
    assert revision is not None
    reconciles = not isinstance(manifest.when, Calendar)
    # What a person sends waits for PCs that are off; the tick asks again when it has expired.
    expires_with_window = reconciles and not facts.by_hand
    return DispatchPlan(
        revision=revision,
        origin=Origin.FIRE if facts.by_hand else Origin.SCHEDULE,
        actor=SCHEDULER,
        schedule=found.schedule,
        nominal_at=nominal_at,
        target=manifest.target,
        selection=_selection(found, decided),
        reconciles=reconciles,
        # Each PC that is due gets its own; waves are for whole targets.
        rollout=None if isinstance(manifest.when, PerPc) else manifest.rollout,
        timetable=Timetable() if facts.by_hand else facts.timetable,
        jitter=manifest.jitter,
        wait=wait_for_start(
            manifest.starting_deadline,
            suppression=found.terms.window if expires_with_window else None,
        ),
        retry=manifest.retry,
        max_concurrent=manifest.constraints.max_concurrent,
        params=dict(manifest.params),
    )


def _selection(found: Evaluated, decided: Dispatch) -> Selection:
    if decided.agents is None:
        return WholeTarget(skip_in_flight=found.facts.by_hand)
    if isinstance(found.manifest.when, PerTarget) and found.manifest.rollout is not None:
        return LiveMembers()
    if not decided.has_more:
        return Chosen(decided.agents)
    if isinstance(found.manifest.when, PerTarget):
        return LiveMembers(decided.limit)
    return DueAgents(decided.limit)
