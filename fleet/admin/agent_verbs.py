"""What people do to PCs from their pages."""

from typing import Any

from django import forms
from django.urls import reverse

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
from fleet.operations.replacing import likely_predecessors, take_over_record

ENROLMENT = ("fleet.view_agent", "fleet.manage_enrolment")
MOST_GROUPS_OFFERED = 500
MOST_PREDECESSORS = 20


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


class PredecessorForm(ReasonForm):
    """Which record the PC had before it was set up anew."""

    old = forms.ChoiceField(
        label="It was",
        help_text="Of the same machine, or of the same name.",
        error_messages={"required": "Choose the record it had."},
    )
    field_order = ("old", "reason")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        found = (
            likely_predecessors(self.target) if self.target is not None else Agent.objects.none()
        )
        field = self.fields["old"]
        field.choices = [(old.pk, old.name) for old in found[:MOST_PREDECESSORS]]  # type: ignore[attr-defined]  # a choice field


def _take_over_record(call: Call[Agent]) -> Done:
    old = Agent.objects.get(pk=call.data["old"])
    record = take_over_record(
        call.obj, old, actor=call.actor, now=call.now, reason=call.data["reason"]
    )
    url = reverse("admin:fleet_agent_change", args=[record.pk])
    return Done(f"The machine is {record.name} again.", url)


def _has_predecessor(agent: Agent) -> bool:
    return agent.state != AgentState.REVOKED and likely_predecessors(agent).exists()


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
        name="take-over-record",
        title="It is an older PC",
        text="The PC was set up anew: it goes on under the record that it had, with its name, "
        "groups and history. Its schedules find it due. The record shown here is revoked.",
        permissions=ENROLMENT,
        act=_take_over_record,
        form=PredecessorForm,
        fits=_has_predecessor,
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
