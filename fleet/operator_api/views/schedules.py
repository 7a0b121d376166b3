"""Schedules: when and where, switched on and off, and what they will do."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, ClassVar

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.flow.coverage import Done
from fleet.flow.manifests import local_zone
from fleet.models import Schedule
from fleet.operations.firing import fire_schedule
from fleet.operations.schedules import (
    delete_schedule,
    disable_schedule,
    enable_schedule,
    save_schedule,
)
from fleet.operator_api.documents import ScheduleDocument
from fleet.operator_api.filters import ScheduleFilters
from fleet.operator_api.insights import coverage_with_pcs, explanation_of, statuses
from fleet.operator_api.previews import count_of, preview_of
from fleet.operator_api.resource import Rights
from fleet.operator_api.runs import KEY_PARAMETER, RunsAllowed, answer_run
from fleet.operator_api.shapes.executions import StartedOut
from fleet.operator_api.shapes.insights import (
    CoverageWithPcsOut,
    ExplanationOut,
    StatusOut,
)
from fleet.operator_api.shapes.jobs import NoBody
from fleet.operator_api.shapes.schedules import DisableBody, FireBody, PreviewOut
from fleet.operator_api.views.manifests import Manifests
from fleet.rules.manifest import parse_schedule
from fleet.rules.problems import Problem

_VIEW = ("fleet.view_schedule",)
_SWITCH = ("fleet.change_schedule", "fleet.fire_schedule")


class Schedules(Manifests):
    """When jobs run, and where."""

    queryset = Schedule.objects.select_related("job")
    serializer_class = ScheduleDocument
    filterset_class = ScheduleFilters
    right_to_add = "fleet.add_schedule"
    rights: ClassVar[Rights] = {
        "list": _VIEW,
        "retrieve": _VIEW,
        "create": ("fleet.add_schedule",),
        "update": ("fleet.change_schedule",),
        "partial_update": ("fleet.change_schedule",),
        "destroy": ("fleet.delete_schedule",),
        "preview": _VIEW,
        "schedule_status": _VIEW,
        "coverage": (*_VIEW, "fleet.view_agent"),
        "explain": (*_VIEW, "fleet.view_agent", "fleet.view_command"),
        "enable": _SWITCH,
        "disable": _SWITCH,
        "fire": (*_VIEW, "fleet.fire_schedule"),
    }

    def save(self, document: object, *, must_be_new: bool) -> Schedule:
        """Store the schedule; it is armed and looked at at once."""
        return save_schedule(document, actor=self.actor, now=self.now, must_be_new=must_be_new)

    def remove(self, row: Schedule) -> None:
        """Delete the schedule; its executions stay."""
        delete_schedule(row, actor=self.actor, now=self.now)

    def document_of(self, row: Schedule) -> Mapping[str, Any]:
        """Return the stored manifest."""
        manifest: dict[str, Any] = row.manifest
        return manifest

    def warnings_of(self, document: object) -> Iterable[Problem]:
        """Return what is kept without effect."""
        return parse_schedule(document, local=local_zone()).warnings

    def statuses_of(self, rows: Sequence[Schedule]) -> Mapping[int, Any]:
        """Return next and last run, the last day and the decision of each schedule."""
        return statuses(rows, now=self.now)

    @extend_schema(summary="How a schedule is", responses=StatusOut, filters=False)
    @action(detail=True, url_path="status", pagination_class=None)
    def schedule_status(self, request: Request, id: str) -> Response:
        """Answer next run, last run, the last day, and what the ticks decide and why."""
        row: Schedule = self.row(id)
        return Response(self.statuses_of([row])[row.pk])

    @extend_schema(
        summary="How far a schedule has come",
        responses=CoverageWithPcsOut,
        parameters=[OpenApiParameter("state", str, enum=[state.value for state in Done])],
        filters=False,
    )
    @action(detail=True)
    def coverage(self, request: Request, id: str) -> Response:
        """Answer on how many of all its PCs the job is done, and how each one stands."""
        self.ordering = "name_fold"
        return Response(coverage_with_pcs(self, self.row(id)))

    @extend_schema(
        summary="Why a schedule fires or does not",
        responses=ExplanationOut,
        parameters=[
            OpenApiParameter("agent", str, description="A PC by name or uuid."),
            OpenApiParameter("at", datetime, description="With its offset; by default now."),
        ],
        filters=False,
    )
    @action(detail=True, pagination_class=None)
    def explain(self, request: Request, id: str) -> Response:
        """Answer every gate in order with its verdict, now, at a past time or at one to come."""
        return Response(explanation_of(self, self.row(id)))

    @extend_schema(
        summary="The next fires of a schedule",
        responses=PreviewOut,
        parameters=[OpenApiParameter("count", int, description="1 to 50, by default 5")],
        filters=False,
    )
    @action(detail=True, pagination_class=None)
    def preview(self, request: Request, id: str) -> Response:
        """Answer when it fires next, in its zone and in UTC; also while it is disabled."""
        count = count_of(request.query_params.get("count"))
        return Response(preview_of(self.row(id), count=count, now=self.now))

    @extend_schema(summary="Switch a schedule on", request=None)
    @action(detail=True, methods=["post"])
    def enable(self, request: Request, id: str) -> Response:
        """Let it fire; what fell due meanwhile is not caught up. Twice is once."""
        self.read(NoBody)
        enable_schedule(self.row(id), actor=self.actor, now=self.now)
        return self.retrieve(request, id)

    @extend_schema(summary="Switch a schedule off", request=DisableBody)
    @action(detail=True, methods=["post"])
    def disable(self, request: Request, id: str) -> Response:
        """Let it fire no more; `cascade` revokes its job, `cascade_kill` also stops what runs."""
        body = self.read(DisableBody)
        if body["cascade"] or body["cascade_kill"]:
            self.require("fleet.change_job", "fleet.revoke_job")
        if body["cascade_kill"]:
            self.require("fleet.kill_execution")
        disable_schedule(self.row(id), actor=self.actor, now=self.now, **body)
        return self.retrieve(request, id)

    @extend_schema(
        summary="Fire a schedule now",
        request=FireBody,
        responses={201: StartedOut},
        parameters=[KEY_PARAMETER],
    )
    @action(detail=True, methods=["post"], throttle_classes=[RunsAllowed])
    def fire(self, request: Request, id: str) -> Response:
        """Dispatch its target now, whatever its window, period and cooldown say."""
        body = self.read(FireBody)
        if body["override_freeze"]:
            self.require("fleet.override_freeze")
        fire = partial(fire_schedule, self.row(id), actor=self.actor, now=self.now, **body)
        return answer_run(self, body, fire)
