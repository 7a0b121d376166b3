"""Jobs: what to run, and running it."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import exceptions
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.flow.tallies import Live, live_of
from fleet.models import Job, JobRevision
from fleet.operations.approving import approve_revision
from fleet.operations.jobs import delete_job, revoke_job, save_job, unrevoke_job
from fleet.operations.running import run_job
from fleet.operations.stopping import kill_job
from fleet.operator_api.documents import JobDocument
from fleet.operator_api.filters import JobFilters
from fleet.operator_api.resource import Rights
from fleet.operator_api.runs import KEY_PARAMETER, RunsAllowed, answer_run
from fleet.operator_api.shapes.executions import StartedOut
from fleet.operator_api.shapes.jobs import ApproveBody, JobStatusOut, KilledOut, RunBody
from fleet.operator_api.views.manifests import Manifests
from fleet.rules.manifest import parse_job
from fleet.rules.problems import Problem
from scheduler.api.shapes import ReasonBody

_VIEW = ("fleet.view_job",)


class Jobs(Manifests):
    """What can be run."""

    queryset = Job.objects.select_related("latest", "current")
    serializer_class = JobDocument
    filterset_class = JobFilters
    right_to_add = "fleet.add_job"
    rights: ClassVar[Rights] = {
        "list": _VIEW,
        "retrieve": _VIEW,
        "job_status": _VIEW,
        "create": ("fleet.add_job",),
        "update": ("fleet.change_job",),
        "partial_update": ("fleet.change_job",),
        "destroy": ("fleet.delete_job",),
        "exec": (*_VIEW, "fleet.run_job"),
        "kill": (*_VIEW, "fleet.kill_execution"),
        "revoke": ("fleet.change_job", "fleet.revoke_job"),
        "unrevoke": ("fleet.change_job", "fleet.revoke_job"),
        "approve": (*_VIEW, "fleet.approve_job"),
    }

    def save(self, document: object, *, must_be_new: bool) -> Job:
        """Store the job; what is run under a version that is used already cannot change."""
        return save_job(document, actor=self.actor, now=self.now, must_be_new=must_be_new)

    def remove(self, row: Job) -> None:
        """Revoke and delete the job."""
        delete_job(row, actor=self.actor, now=self.now)

    def document_of(self, row: Job) -> Mapping[str, Any]:
        """Return the manifest of the newest revision, which is what people edit."""
        manifest: dict[str, Any] = row.latest.manifest if row.latest else {"id": row.slug}
        return manifest

    def warnings_of(self, document: object) -> Iterable[Problem]:
        """Return what is kept without effect."""
        return parse_job(document).warnings

    def statuses_of(self, rows: Sequence[Job]) -> Mapping[int, Any]:
        """Return revision, approval, revocation and open executions of each job."""
        live = live_of(rows)
        return {row.pk: status_of(row, live.get(row.pk, Live())) for row in rows}

    @extend_schema(summary="How a job is", responses=JobStatusOut)
    @action(detail=True, url_path="status")
    def job_status(self, request: Request, id: str) -> Response:
        """Answer which revision runs, and what of the job is under way."""
        return self._status(id)

    @extend_schema(
        summary="Run a job now",
        request=RunBody,
        responses={201: StartedOut},
        parameters=[KEY_PARAMETER],
    )
    @action(detail=True, methods=["post"], throttle_classes=[RunsAllowed])
    def exec(self, request: Request, id: str) -> Response:
        """Run the job now on a target; 409 while the fleet is frozen, unless overridden."""
        body = self.read(RunBody)
        if body["override_freeze"]:
            self.require("fleet.override_freeze")
        run = partial(run_job, self.row(id), actor=self.actor, now=self.now, **body)
        return answer_run(self, body, run)

    @extend_schema(summary="Stop what runs of a job", request=ReasonBody, responses=KilledOut)
    @action(detail=True, methods=["post"])
    def kill(self, request: Request, id: str) -> Response:
        """Stop every open execution of the job."""
        stopped = kill_job(self.row(id), actor=self.actor, now=self.now, **self.read(ReasonBody))
        return Response({"executions": stopped})

    @extend_schema(summary="Revoke a job", request=ReasonBody, responses=JobStatusOut)
    @action(detail=True, methods=["post"])
    def revoke(self, request: Request, id: str) -> Response:
        """Forbid the job to start anywhere, commands that wait included."""
        row = self.row(id)
        revoke_job(row, actor=self.actor, now=self.now, **self.read(ReasonBody))
        return self._status(id)

    @extend_schema(
        summary="Take a job's revocation back", request=ReasonBody, responses=JobStatusOut
    )
    @action(detail=True, methods=["post"])
    def unrevoke(self, request: Request, id: str) -> Response:
        """Allow the job to start again."""
        row = self.row(id)
        unrevoke_job(row, actor=self.actor, now=self.now, **self.read(ReasonBody))
        return self._status(id)

    @extend_schema(summary="Approve a revision", request=ApproveBody, responses=JobStatusOut)
    @action(detail=True, methods=["post"])
    def approve(self, request: Request, id: str) -> Response:
        """Let a revision run (the newest, or the one named); not by who asked for it."""
        body = self.read(ApproveBody)
        number = body.get("revision")
        row: Job = self.row(id)
        revision = row.latest if number is None else row.revisions.filter(number=number).first()
        if revision is None:
            raise exceptions.ValidationError({"revision": ["the job has no such revision"]})
        approve_revision(revision, actor=self.actor, now=self.now, reason=body["reason"])
        return self._status(id)

    def _status(self, slug: str) -> Response:
        row: Job = self.row(slug)
        return Response(self.statuses_of([row])[row.pk])


def status_of(job: Job, live: Live) -> Any:
    """Return the answer on how a job is."""
    latest, current = job.latest, job.current
    return JobStatusOut(
        {
            "revision": latest.number if latest else 0,
            "version": latest.version if latest else "",
            "current_revision": current.number if current else None,
            "current_version": current.version if current else None,
            "waits_for_approval": latest is not None and _waits(latest),
            "revoked": job.revoked_at is not None,
            "revoked_at": job.revoked_at,
            "live": live,
        }
    ).data


def _waits(revision: JobRevision) -> bool:
    return revision.requires_approval and revision.approved_at is None
