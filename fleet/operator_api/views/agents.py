"""PCs: who they are, which groups they are in, and whether they may take work."""

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, ClassVar

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.models import Agent
from fleet.operations import agents as verbs
from fleet.operations.groups import set_groups_of
from fleet.operations.replacing import take_over_record
from fleet.operator_api.addresses import agent_named
from fleet.operator_api.filters import AgentFilters
from fleet.operator_api.resource import Resource, Rights
from fleet.operator_api.shapes.agents import (
    AcceptedOut,
    AgentOut,
    GroupBody,
    GroupsBody,
    PcsBody,
    PredecessorBody,
)
from scheduler.api.shapes import ReasonBody

_VIEW = ("fleet.view_agent",)
_REGROUP = (*_VIEW, "fleet.change_group", "fleet.change_membership")
_ENROL = ("fleet.change_agent", "fleet.manage_enrolment")


class Agents(ListModelMixin, Resource):
    """The PCs of the fleet."""

    queryset = Agent.objects.select_related("presence").prefetch_related("groups")
    serializer_class = AgentOut
    filterset_class = AgentFilters
    ordering = "name_fold"
    lookup_url_kwarg = "pc"
    lookup_value_converter = "str"
    rights: ClassVar[Rights] = {
        "list": _VIEW,
        "retrieve": _VIEW,
        "groups": (*_VIEW, "fleet.view_group"),
        "set_groups": _REGROUP,
        "join_group": _REGROUP,
        "leave_group": _REGROUP,
        "accept": _ENROL,
        "accept_many": _ENROL,
        "revoke": _ENROL,
        "take_over": _ENROL,
        "take_over_record": _ENROL,
        "dismiss": _ENROL,
        "rotate": _ENROL,
    }

    def get_serializer_context(self) -> dict[str, Any]:
        """Tell the shapes what time it is."""
        return {**super().get_serializer_context(), "now": self.now}

    @extend_schema(summary="Read a PC, by name or uuid")
    def retrieve(self, request: Request, pc: str) -> Response:
        """Answer one PC."""
        return Response(self.get_serializer(self._agent(pc)).data)

    @extend_schema(summary="The groups of a PC", responses=GroupsBody, filters=False)
    @action(detail=True, pagination_class=None)
    def groups(self, request: Request, pc: str) -> Response:
        """Answer the ids of its groups, sorted."""
        return Response({"groups": slugs_of(self._agent(pc))})

    @extend_schema(
        summary="Put a PC into exactly these groups", request=GroupsBody, responses=GroupsBody
    )
    @groups.mapping.put
    def set_groups(self, request: Request, pc: str) -> Response:
        """Make it a member of these groups and no others."""
        return self._regroup(self._agent(pc), self.read(GroupsBody)["groups"])

    @extend_schema(summary="Put a PC into one more group", request=GroupBody, responses=GroupsBody)
    @groups.mapping.post
    def join_group(self, request: Request, pc: str) -> Response:
        """Add it to a group."""
        agent = self._agent(pc)
        return self._regroup(agent, [*slugs_of(agent), self.read(GroupBody)["group"]])

    @extend_schema(summary="Take a PC out of a group", responses={204: None})
    @action(detail=True, methods=["delete"], url_path="groups/<fleet_slug:group>")
    def leave_group(self, request: Request, pc: str, group: str) -> Response:
        """Remove it from a group; 404 where it is in none of that id."""
        agent = self._agent(pc)
        left = [slug for slug in slugs_of(agent) if slug.lower() != group.lower()]
        if len(left) == len(slugs_of(agent)):
            raise Http404
        self._regroup(agent, left)
        return Response(status=HTTPStatus.NO_CONTENT)

    @extend_schema(summary="Accept a PC that waits for it", request=ReasonBody)
    @action(detail=True, methods=["post"])
    def accept(self, request: Request, pc: str) -> Response:
        """Let it take work; 409 where it does not wait."""
        return self._act(verbs.accept_agent, pc)

    # No PC can be called "-".
    @extend_schema(summary="Accept several PCs that wait", request=PcsBody, responses=AcceptedOut)
    @action(detail=False, methods=["post"], url_path="-/accept", pagination_class=None)
    def accept_many(self, request: Request) -> Response:
        """Accept each that waits; the answer names those that do not, and why."""
        body = self.read(PcsBody)
        done = verbs.accept_agents(
            body["pcs"], actor=self.actor, now=self.now, reason=body["reason"]
        )
        return Response(AcceptedOut(done).data)

    @extend_schema(summary="Shut a PC out", request=ReasonBody)
    @action(detail=True, methods=["post"])
    def revoke(self, request: Request, pc: str) -> Response:
        """Refuse its next request; what it was not given yet is cancelled. Twice is once."""
        return self._act(verbs.revoke_agent, pc)

    @extend_schema(
        summary="Give the identity to the machine that last presented it", request=ReasonBody
    )
    @action(detail=True, methods=["post"], url_path="take-over")
    def take_over(self, request: Request, pc: str) -> Response:
        """Accept the other machine; 409 where there is none."""
        return self._act(verbs.accept_rival, pc)

    @extend_schema(
        summary="Let a PC that was set up anew go on under its old record", request=PredecessorBody
    )
    @action(detail=True, methods=["post"], url_path="take-over-record")
    def take_over_record(self, request: Request, pc: str) -> Response:
        """Answer the old record, which is the machine's again; 409 where one of them is revoked."""
        agent, body = self._agent(pc), self.read(PredecessorBody)
        old = agent_named(self.get_queryset(), body["old"])
        record = take_over_record(agent, old, actor=self.actor, now=self.now, reason=body["reason"])
        return self.retrieve(self.request, record.name)

    @extend_schema(summary="Keep the identity with the machine that has it", request=ReasonBody)
    @action(detail=True, methods=["post"])
    def dismiss(self, request: Request, pc: str) -> Response:
        """Forget the other machine; it is shown again if it comes back."""
        return self._act(verbs.dismiss_rival, pc)

    @extend_schema(summary="Have a PC get a new credential", request=ReasonBody)
    @action(detail=True, methods=["post"])
    def rotate(self, request: Request, pc: str) -> Response:
        """Replace its credential with the next exchange; 409 where it is revoked."""
        return self._act(verbs.rotate_credential, pc)

    def _act(self, verb: Callable[..., None], pc: str) -> Response:
        verb(self._agent(pc), actor=self.actor, now=self.now, **self.read(ReasonBody))
        return self.retrieve(self.request, pc)

    def _regroup(self, agent: Agent, slugs: Sequence[str]) -> Response:
        set_groups_of(agent, slugs, actor=self.actor, now=self.now)
        return Response({"groups": slugs_of(Agent.objects.get(pk=agent.pk))})

    def _agent(self, pc: str) -> Agent:
        return agent_named(self.get_queryset(), pc)


def slugs_of(agent: Agent) -> list[str]:
    """Return the ids of the PC's groups, sorted."""
    return sorted(group.slug for group in agent.groups.all())
