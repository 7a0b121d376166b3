"""Executions: how far they are, and their commands."""

from functools import partial
from typing import Any, ClassVar
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.flow.tallies import standings_of
from fleet.models import Command, Execution, Result
from fleet.operations.approving import approve_execution
from fleet.operations.repeating import run_again
from fleet.operations.stopping import kill_execution
from fleet.operator_api.addresses import row_of_id
from fleet.operator_api.filters import CommandFilters, ExecutionFilters
from fleet.operator_api.resource import Resource, Rights
from fleet.operator_api.runs import KEY_PARAMETER, RunsAllowed, answer_run, whole
from fleet.operator_api.shapes.executions import (
    CommandOut,
    ExecutionOut,
    ExecutionWithCommandsOut,
    StartedOut,
    WaveOut,
)
from fleet.operator_api.shapes.schedules import FireBody
from scheduler.api.shapes import ReasonBody

_VIEW = ("fleet.view_execution",)
EXECUTIONS = Execution.objects.select_related("job", "revision").defer("revision__manifest")


class Executions(Resource):
    """Dispatches of jobs."""

    queryset = EXECUTIONS
    lookup_url_kwarg = "id"
    lookup_value_converter = "uuid"
    serializer_class = ExecutionOut
    filterset_class = ExecutionFilters
    rights: ClassVar[Rights] = {
        "list": _VIEW,
        "retrieve": (*_VIEW, "fleet.view_command"),
        "kill": (*_VIEW, "fleet.kill_execution"),
        "approve": (*_VIEW, "fleet.approve_job"),
        "retry": (*_VIEW, "fleet.view_job", "fleet.run_job"),
    }

    @extend_schema(summary="List executions, newest first")
    def list(self, request: Request) -> Response:
        """Answer a page of executions; the counts of very large ones are in their own answer."""
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        context = {"standings": standings_of(page)}
        return self.get_paginated_response(ExecutionOut(page, many=True, context=context).data)

    @extend_schema(summary="Read an execution", responses=ExecutionWithCommandsOut)
    def retrieve(self, request: Request, id: UUID) -> Response:
        """Answer an execution, its waves and a page of its commands (`?state=`, `?pc=`)."""
        execution = self.execution(id)
        body = dict(whole(execution))
        body["waves"] = WaveOut(execution.waves.all(), many=True).data
        body["commands"] = self._commands(execution)
        return Response(body)

    @extend_schema(summary="Stop an execution", request=ReasonBody)
    @action(detail=True, methods=["post"])
    def kill(self, request: Request, id: UUID) -> Response:
        """Cancel what waits and have the PCs stop what runs; 409 where it is over."""
        body = self.read(ReasonBody)
        kill_execution(self.execution(id), actor=self.actor, now=self.now, **body)
        return Response(whole(self.execution(id)))

    @extend_schema(summary="Let an execution start that waits for it", request=ReasonBody)
    @action(detail=True, methods=["post"])
    def approve(self, request: Request, id: UUID) -> Response:
        """Start it as a second person; 403 for who asked for it."""
        body = self.read(ReasonBody)
        approve_execution(self.execution(id), actor=self.actor, now=self.now, **body)
        return Response(whole(self.execution(id)))

    @extend_schema(
        summary="Run again where it failed",
        request=FireBody,
        responses={201: StartedOut},
        parameters=[KEY_PARAMETER],
    )
    @action(detail=True, methods=["post"], throttle_classes=[RunsAllowed])
    def retry(self, request: Request, id: UUID) -> Response:
        """Run the job's current revision on the PCs where it failed, as a new execution."""
        body = self.read(FireBody)
        if body["override_freeze"]:
            self.require("fleet.override_freeze")
        execution = self.execution(id)
        again = partial(run_again, execution, actor=self.actor, now=self.now, **body)
        return answer_run(self, body, again)

    def execution(self, key: UUID) -> Execution:
        """Return the execution that the address names."""
        return row_of_id(EXECUTIONS, key)

    def _commands(self, execution: Execution) -> Any:
        rows = Command.objects.filter(execution=execution).select_related("agent")
        rows = rows.only(*_COMMAND_COLUMNS)
        page = self.paginate_queryset(self.narrowed(rows, CommandFilters)) or []
        ended = Result.objects.filter(command_id__in=[command.pk for command in page])
        results = {result.pk: result for result in ended.only("exit_code", "late")}
        shown = CommandOut(page, many=True, context={"results": results}).data
        return self.get_paginated_response(shown).data


_COMMAND_COLUMNS = (
    "state",
    "reason",
    "wave",
    "attempt",
    "created_at",
    "start_after",
    "deadline_at",
    "handed_out_at",
    "started_at",
    "ended_at",
    "kill_requested_at",
    "agent__name",
    "agent__uuid",
)
