"""Executions: how far they are, and their commands."""

from typing import Any, ClassVar
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.flow.tallies import Standing, standings_of, tallies_of, word_of
from fleet.models import Command, Execution, Result
from fleet.operator_api.addresses import row_of_id
from fleet.operator_api.filters import CommandFilters, ExecutionFilters
from fleet.operator_api.resource import Resource, Rights
from fleet.operator_api.shapes.executions import (
    CommandOut,
    ExecutionOut,
    ExecutionWithCommandsOut,
    WaveOut,
)

EXECUTIONS = Execution.objects.select_related("job", "revision").defer("revision__manifest")


class Executions(Resource):
    """Dispatches of jobs."""

    queryset = EXECUTIONS
    lookup_url_kwarg = "id"
    lookup_value_converter = "uuid"
    serializer_class = ExecutionOut
    filterset_class = ExecutionFilters
    rights: ClassVar[Rights] = {
        "list": ("fleet.view_execution",),
        "retrieve": ("fleet.view_execution", "fleet.view_command"),
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
        body = dict(one(execution))
        body["waves"] = WaveOut(execution.waves.all(), many=True).data
        body["commands"] = self._commands(execution)
        return Response(body)

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


def one(execution: Execution) -> Any:
    """Return the answer for one execution, its commands counted whatever their number."""
    counted = tallies_of([execution])[execution.pk]
    standing = Standing(word_of(execution, counted), counted)
    return ExecutionOut(execution, context={"standings": {execution.pk: standing}}).data
