"""What people do to executions: stop one, run it again where it failed, approve one."""

from typing import Any

from django import forms
from django.urls import reverse

from fleet.admin.verbs import Call, Done, ReasonForm, Verb
from fleet.models import Execution
from fleet.operations.approving import approve_execution
from fleet.operations.repeating import run_again
from fleet.operations.stopping import kill_execution
from fleet.rules.execution_states import OPEN_EXECUTIONS, ExecutionState
from fleet.rules.refusals import NotAllowed

MAY_OVERRIDE = "fleet.override_freeze"


class OverrideForm(ReasonForm):
    """An act that a freeze forbids, unless somebody with the right says why."""

    override_freeze = forms.BooleanField(
        required=False,
        label="Although the fleet is frozen",
        help_text="Needs a reason, which stays on the run and in the audit log.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.user.has_perm(MAY_OVERRIDE):
            del self.fields["override_freeze"]


def overrides(call: Call[Any]) -> bool:
    """Whether this call passes a freeze; refused without the right, whatever was posted."""
    wanted = bool(call.data.get("override_freeze"))
    if wanted and not call.user.has_perm(MAY_OVERRIDE):
        raise NotAllowed("you may not override a freeze")
    return wanted


def _kill(call: Call[Execution]) -> Done:
    kill_execution(call.obj, actor=call.actor, now=call.now, reason=call.data["reason"])
    return Done("What waits is cancelled, and the PCs are told to stop what runs.")


def _run_again(call: Call[Execution]) -> Done:
    execution = run_again(
        call.obj,
        actor=call.actor,
        now=call.now,
        reason=call.data["reason"],
        override_freeze=overrides(call),
    )
    url = reverse("admin:fleet_execution_change", args=[execution.pk])
    return Done("It runs again where it failed.", url)


def _approve(call: Call[Execution]) -> Done:
    approve_execution(call.obj, actor=call.actor, now=call.now, reason=call.data["reason"])
    return Done("Approved; it starts.")


def _is_open(execution: Execution) -> bool:
    return ExecutionState(execution.state) in OPEN_EXECUTIONS


VERBS: tuple[Verb[Execution], ...] = (
    Verb(
        name="approve",
        title="Approve",
        text="The run was asked for by somebody else and waits for a second person.",
        permissions=("fleet.view_execution", "fleet.approve_job"),
        act=_approve,
        look="primary",
        fits=lambda execution: execution.state == ExecutionState.AWAITING_APPROVAL,
        for_many=False,
    ),
    Verb(
        name="again",
        title="Run again where it failed",
        text="The job runs once more, in its current version, on the PCs where this run failed.",
        permissions=("fleet.view_execution", "fleet.view_job", "fleet.run_job"),
        act=_run_again,
        form=OverrideForm,
        for_many=False,
    ),
    Verb(
        name="kill",
        title="Stop",
        text="What no PC has yet is cancelled; PCs that run it end its whole process tree.",
        permissions=("fleet.view_execution", "fleet.kill_execution"),
        act=_kill,
        look="danger",
        fits=_is_open,
    ),
)
