"""Results: how commands ended, and what their scripts wrote."""

from collections.abc import Iterable, Mapping
from typing import ClassVar
from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.models import Agent, Job, OutputChunk, Result, Schedule, Stream
from fleet.operator_api.addresses import row_of_id
from fleet.operator_api.filters import OutputFilters, ResultFilters
from fleet.operator_api.outputs import Text, download, text_of
from fleet.operator_api.resource import Resource, Rights
from fleet.operator_api.shapes.executions import ResultOut


class PlainText(BaseRenderer):
    """Lets callers ask for text/plain; the answer is made by the view."""

    media_type = "text/plain"
    format = "txt"


class Results(Resource):
    """How commands ended. No list reads an output."""

    queryset = Result.objects.all()
    lookup_url_kwarg = "id"
    lookup_value_converter = "uuid"
    serializer_class = ResultOut
    filterset_class = ResultFilters
    rights: ClassVar[Rights] = {
        "list": ("fleet.view_result",),
        "retrieve": ("fleet.view_result",),
        "output": ("fleet.view_result", "fleet.view_output"),
    }

    @extend_schema(summary="List results, newest first")
    def list(self, request: Request) -> Response:
        """Answer a page of results."""
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        context = {"names": names_in(page)}
        return self.get_paginated_response(ResultOut(page, many=True, context=context).data)

    @extend_schema(summary="Read a result")
    def retrieve(self, request: Request, id: UUID) -> Response:
        """Answer one result; its id is its command's."""
        result = row_of_id(self.get_queryset(), id)
        return Response(ResultOut(result, context={"names": names_in([result])}).data)

    @extend_schema(
        summary="Download what a script wrote",
        responses={(200, "text/plain"): bytes},
        filters=False,
    )
    @action(detail=True, renderer_classes=[PlainText, JSONRenderer], pagination_class=None)
    def output(self, request: Request, id: UUID) -> HttpResponse:
        """Answer the bytes of `?stream=stdout` or `stderr`, as they came, while it runs as well."""
        self.narrowed(OutputChunk.objects.none(), OutputFilters)
        stream = Stream(request.query_params.get("stream") or Stream.STDOUT)
        text = text_of(id, stream)
        if text is None:
            row_of_id(self.get_queryset(), id)
            text = Text()
        return download(text, f"{id}-{stream}.txt")


def names_in(results: Iterable[Result]) -> Mapping[str, Mapping[int, str]]:
    """Return the names of the PCs, jobs and schedules of a page: three queries."""
    page = list(results)
    agents = Agent.objects.filter(pk__in={result.agent_id for result in page})
    jobs = Job.everything.filter(pk__in={result.job_id for result in page})
    schedule_ids = {result.schedule_id for result in page if result.schedule_id is not None}
    schedules = Schedule.objects.filter(pk__in=schedule_ids)
    return {
        "pcs": dict(agents.order_by().values_list("pk", "name")),
        "jobs": dict(jobs.order_by().values_list("pk", "slug")),
        "schedules": dict(schedules.order_by().values_list("pk", "slug")),
    }
