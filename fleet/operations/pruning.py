"""Delete what a set of manifests made earlier and no longer describes."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from django.db.models import Manager, Model

from fleet.models import Group, Job, Schedule
from fleet.operations.groups import delete_group
from fleet.operations.jobs import delete_job
from fleet.operations.schedules import delete_schedule
from fleet.rules.apply_plan import Action, Located, Step
from fleet.rules.manifest import Kind
from fleet.rules.refusals import Refusal
from scheduler.public import Actor

R = TypeVar("R", bound=Model)


def prune_set(
    set_name: str, kept: Collection[tuple[Kind, str]], *, actor: Actor, now: datetime
) -> Iterator[Step]:
    """Delete the rows of the set that are not `kept` (kind, casefolded id); one step each."""
    # Who uses something goes before it.
    rows: list[tuple[Kind, Schedule | Job | Group, Callable[..., None]]] = [
        *((Kind.SCHEDULE, row, delete_schedule) for row in _of(Schedule.objects, set_name)),
        *((Kind.JOB, row, delete_job) for row in _of(Job.objects, set_name)),
        *((Kind.GROUP, row, delete_group) for row in _of(Group.objects, set_name)),
    ]
    for kind, row, delete in rows:
        if (kind, row.slug.casefold()) in kept:
            continue
        step = Step(Action.DELETE, kind, row.slug)
        try:
            delete(row, actor=actor, now=now)
        except Refusal as refusal:
            problem = Located("", 0, step.name, f"is not deleted: {refusal.message}")
            step = replace(step, action=Action.BAD, problems=(problem,))
        yield step


def _of(manager: Manager[R], set_name: str) -> Iterable[R]:
    return manager.filter(set_name=set_name).order_by("slug")
