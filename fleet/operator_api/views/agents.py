"""PCs: who they are, and which groups they are in."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.models import Agent
from fleet.operator_api.addresses import agent_named
from fleet.operator_api.filters import AgentFilters
from fleet.operator_api.resource import Resource, Rights
from fleet.operator_api.shapes.agents import AgentOut


class Agents(ListModelMixin, Resource):
    """The PCs of the fleet."""

    queryset = Agent.objects.select_related("presence").prefetch_related("groups")
    serializer_class = AgentOut
    filterset_class = AgentFilters
    ordering = "name_fold"
    lookup_url_kwarg = "pc"
    rights: ClassVar[Rights] = {"list": ("fleet.view_agent",), "retrieve": ("fleet.view_agent",)}

    def get_serializer_context(self) -> dict[str, Any]:
        """Tell the shapes what time it is."""
        return {**super().get_serializer_context(), "now": self.now}

    @extend_schema(summary="Read one PC, by name or uuid")
    def retrieve(self, request: Request, pc: str) -> Response:
        """Answer one PC."""
        return Response(self.get_serializer(self.agent(pc)).data)

    def agent(self, pc: str) -> Agent:
        """Return the PC that the address names."""
        return agent_named(self.get_queryset(), pc)
