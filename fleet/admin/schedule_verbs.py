"""What people do to schedules: switch them on and off, fire one now."""

from django.urls import reverse

from fleet.admin.execution_verbs import OverrideForm, overrides
from fleet.admin.verbs import Call, Done, Verb
from fleet.models import Schedule
from fleet.operations.firing import fire_schedule
from fleet.operations.schedules import disable_schedule, enable_schedule

FIRE = ("fleet.view_schedule", "fleet.fire_schedule")


def _fire(call: Call[Schedule]) -> Done:
    execution = fire_schedule(
        call.obj,
        actor=call.actor,
        now=call.now,
        reason=call.data["reason"],
        override_freeze=overrides(call),
    )
    url = reverse("admin:fleet_execution_change", args=[execution.pk])
    return Done(f"{call.obj.slug} is fired.", url)


def _enable(call: Call[Schedule]) -> Done:
    enable_schedule(call.obj, actor=call.actor, now=call.now)
    return Done(f"{call.obj.slug} is enabled and looks at once.")


def _disable(call: Call[Schedule]) -> Done:
    disable_schedule(call.obj, actor=call.actor, now=call.now, reason=call.data["reason"])
    return Done(f"{call.obj.slug} fires no more.")


def _disable_and_revoke(call: Call[Schedule]) -> Done:
    reason = call.data["reason"]
    disable_schedule(call.obj, actor=call.actor, now=call.now, cascade=True, reason=reason)
    return Done(f"{call.obj.slug} fires no more, and {call.obj.job.slug} starts nowhere.")


def _disable_and_kill(call: Call[Schedule]) -> Done:
    reason = call.data["reason"]
    disable_schedule(call.obj, actor=call.actor, now=call.now, cascade_kill=True, reason=reason)
    return Done(f"{call.obj.slug} fires no more, and everything of {call.obj.job.slug} is stopped.")


VERBS: tuple[Verb[Schedule], ...] = (
    Verb(
        name="fire",
        title="Fire now",
        text="The job goes to the schedule's whole target now, whatever its window, period and "
        "cooldown say. A freeze, a revocation, an approval and the cap still hold.",
        permissions=FIRE,
        act=_fire,
        form=OverrideForm,
    ),
    Verb(
        name="enable",
        title="Enable",
        text="The schedule is looked at at once. What fell due while it was off is not caught up.",
        permissions=FIRE,
        act=_enable,
        fits=lambda schedule: not schedule.enabled,
    ),
    Verb(
        name="disable",
        title="Disable",
        text="The schedule fires no more. Commands that wait already still run.",
        permissions=FIRE,
        act=_disable,
        fits=lambda schedule: schedule.enabled,
    ),
    Verb(
        name="disable-revoke",
        title="Disable and revoke the job",
        text="The schedule fires no more, and its job starts nowhere: PCs refuse commands that "
        "wait. What runs goes on.",
        permissions=(*FIRE, "fleet.change_job", "fleet.revoke_job"),
        act=_disable_and_revoke,
        look="danger",
    ),
    Verb(
        name="disable-kill",
        title="Disable, revoke and stop",
        text="The schedule fires no more, its job starts nowhere, and PCs that run the job end "
        "its whole process tree.",
        permissions=(*FIRE, "fleet.change_job", "fleet.revoke_job", "fleet.kill_execution"),
        act=_disable_and_kill,
        look="danger",
    ),
)
