"""What people do to PCs from their pages."""

from typing import Any

from django import forms

from fleet.admin.verbs import Call, Done, ReasonForm, Verb
from fleet.models import Agent, AgentState, Group
from fleet.operations.agents import (
    accept_agent,
    accept_rival,
    dismiss_rival,
    revoke_agent,
    rotate_credential,
)
from fleet.operations.groups import set_groups_of

ENROLMENT = ("fleet.view_agent", "fleet.manage_enrolment")
MOST_GROUPS_OFFERED = 500


class GroupsForm(ReasonForm):
    """Which groups a PC is in."""

    groups = forms.MultipleChoiceField(
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="Schedules that target these groups take the PC in at their next look.",
    )
    field_order = ("groups", "reason")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        slugs = Group.objects.values_list("slug", flat=True)[:MOST_GROUPS_OFFERED]
        field = self.fields["groups"]
        field.choices = [(slug, slug) for slug in slugs]  # type: ignore[attr-defined]  # a choice field
        if self.target is not None:
            self.initial["groups"] = [group.slug for group in self.target.groups.all()]


def _set_groups(call: Call[Agent]) -> Done:
    set_groups_of(
        call.obj,
        call.data["groups"],
        actor=call.actor,
        now=call.now,
        reason=call.data["reason"],
    )
    return Done(f"{call.obj.name} is in {len(call.data['groups'])} groups.")


def _accept(call: Call[Agent]) -> Done:
    accept_agent(call.obj, actor=call.actor, now=call.now, reason=call.data["reason"])
    return Done(f"{call.obj.name} takes work now.")


def _take_over(call: Call[Agent]) -> Done:
    accept_rival(call.obj, actor=call.actor, now=call.now, reason=call.data["reason"])
    return Done(f"The other machine is {call.obj.name} now.")


def _dismiss(call: Call[Agent]) -> Done:
    dismiss_rival(call.obj, actor=call.actor, now=call.now, reason=call.data["reason"])
    return Done(f"{call.obj.name} stays with the machine that has it.")


def _rotate(call: Call[Agent]) -> Done:
    rotate_credential(call.obj, actor=call.actor, now=call.now, reason=call.data["reason"])
    return Done(f"{call.obj.name} gets a new credential with its next exchange.")


def _revoke(call: Call[Agent]) -> Done:
    revoke_agent(call.obj, actor=call.actor, now=call.now, reason=call.data["reason"])
    return Done(f"{call.obj.name} is shut out.")


def _has_rival(agent: Agent) -> bool:
    return bool(agent.rival_fingerprint)


VERBS: tuple[Verb[Agent], ...] = (
    Verb(
        name="groups",
        title="Groups",
        text="The PC is in exactly the groups that are ticked here.",
        permissions=("fleet.view_agent", "fleet.change_membership"),
        act=_set_groups,
        form=GroupsForm,
        for_many=False,
    ),
    Verb(
        name="accept",
        title="Accept",
        text="The PC enrolled with a token for several machines. From now on it takes work.",
        permissions=ENROLMENT,
        act=_accept,
        look="primary",
        fits=lambda agent: agent.state == AgentState.PENDING,
    ),
    Verb(
        name="take-over",
        title="Accept the other machine",
        text="Another machine presents this identity. It takes the identity over, and the machine "
        "that had it is turned away.",
        permissions=ENROLMENT,
        act=_take_over,
        fits=_has_rival,
        for_many=False,
    ),
    Verb(
        name="dismiss",
        title="Turn the other machine away",
        text="The identity stays with the machine that has it.",
        permissions=ENROLMENT,
        act=_dismiss,
        fits=_has_rival,
        for_many=False,
    ),
    Verb(
        name="rotate",
        title="New credential",
        text="The PC gets a new credential with its next exchange; the old one is good until then.",
        permissions=ENROLMENT,
        act=_rotate,
        fits=lambda agent: agent.state != AgentState.REVOKED,
    ),
    Verb(
        name="revoke",
        title="Revoke",
        text="The PC is shut out from its next request on. What it was not given yet is "
        "cancelled; what it runs ends as “outcome unknown”. To come back it enrols anew.",
        permissions=ENROLMENT,
        act=_revoke,
        look="danger",
        fits=lambda agent: agent.state != AgentState.REVOKED,
    ),
)
