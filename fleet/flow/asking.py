"""Ask that schedules are looked at, in the transaction of whoever changed something."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from django.db.models import QuerySet

from fleet.flow.wakes import wake_everybody
from fleet.models import Schedule, Shape
from scheduler.public import request

RECONCILE = (Shape.PER_PC, Shape.PER_TARGET)
EVALUATE = "fleet.evaluate"
TARGETS = "fleet.targets"
TICK = "fleet.tick"


def ask_evaluation(schedule_id: int, *, now: datetime) -> None:
    """Have one schedule looked at soon, without waiting for the minute."""
    request(EVALUATE, key=str(schedule_id), now=now)


def ask_targets(schedule_id: int, *, now: datetime) -> None:
    """Have the rows of (schedule, agent) made to follow from target and groups."""
    request(TARGETS, key=str(schedule_id), now=now)


def ask_tick(*, now: datetime) -> None:
    """Have all schedules looked at soon."""
    request(TICK, key="by hand", now=now)


def mark_targets(schedules: QuerySet[Schedule], *, now: datetime) -> None:
    """Have the rows of (schedule, agent) of these schedules computed anew."""
    found = [pk for pk, _ in _locked(schedules)]
    Schedule.objects.filter(pk__in=found).update(targets_dirty_at=now)
    for pk in found:
        ask_targets(pk, now=now)


def _locked(schedules: QuerySet[Schedule]) -> list[tuple[int, bool]]:
    """Key and place of the schedules, locked in one order: job, schedule, then its agents.

    Everybody locks in that order, so that an edit and a tick never wait for each other.
    """
    rows = schedules.order_by("pk").select_for_update(of=("self",), no_key=True)
    return list(rows.values_list("pk", "runs_on_agent"))


def look_again(schedules: QuerySet[Schedule], *, now: datetime) -> None:
    """Have enabled schedules evaluated at once, by the server or by the agents that run them."""
    ours = [pk for pk, on_agents in _locked(schedules.filter(enabled=True)) if not on_agents]
    Schedule.objects.filter(pk__in=ours).update(look_at=now, held=False)
    for pk in ours:
        ask_evaluation(pk, now=now)
    if schedules.filter(runs_on_agent=True).exists():
        wake_everybody()


def naming_groups(slugs: Iterable[str]) -> dict[int, Schedule]:
    """The schedules whose target or waves name one of the groups, by key."""
    wanted = {slug.casefold() for slug in slugs}
    # Manifests are read here: not every database can look into a list inside JSON.
    return {
        schedule.pk: schedule
        for schedule in Schedule.objects.order_by("slug")
        if wanted & {slug.casefold() for slug in _groups_in(schedule.manifest)}
    }


def _groups_in(manifest: object) -> Iterator[str]:
    if not isinstance(manifest, dict):
        return
    target, rollout = manifest.get("target"), manifest.get("rollout")
    if isinstance(target, dict):
        yield from target.get("groups", [])
    if isinstance(rollout, dict):
        yield from (wave["group"] for wave in rollout.get("waves", []))


def groups_changed(slugs: Iterable[str], *, now: datetime) -> None:
    """Have everything that names the groups follow their new members."""
    found = naming_groups(slugs)
    ours = Schedule.objects.filter(pk__in=found, runs_on_agent=False)
    mark_targets(ours.filter(shape__in=RECONCILE), now=now)
    look_again(Schedule.objects.filter(pk__in=found), now=now)
