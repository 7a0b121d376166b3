"""Revisions of jobs: what exactly ran. They are never changed."""

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from fleet.admin.base import ReadOnlyAdmin
from fleet.admin.job_page import difference
from fleet.models import JobRevision
from fleet.rules.document_writer import dump_yaml
from fleet.templatetags.kanade import moment, pill


@admin.register(JobRevision)
class JobRevisionAdmin(ReadOnlyAdmin[JobRevision]):
    """Every content that a job ever had."""

    list_display = ("job", "version", "number", "written", "standing")
    list_display_links = ("version",)
    lookups: ClassVar[frozenset[str]] = frozenset({"job_id"})

    def get_queryset(self, request: HttpRequest) -> QuerySet[JobRevision]:
        """Return the revisions with their jobs, the newest first."""
        found = super().get_queryset(request).select_related("job", "job__current")
        return found.defer("manifest", "job__current__manifest").order_by("-pk")

    @admin.display(description="written")
    def written(self, revision: JobRevision) -> str:
        """Return when it was written."""
        return moment(revision.created_at)

    @admin.display(description="state")
    def standing(self, revision: JobRevision) -> str:
        """Return whether it waits for approval."""
        waits = revision.requires_approval and revision.approved_at is None
        return pill("not approved") if waits else ""

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the revision, and what it changed."""
        revision = self.get_visible(request, object_id)
        before = revision.job.revisions.filter(number=revision.number - 1).first()
        context = {
            "title": f"{revision.job.slug} {revision.version}",
            "revision": revision,
            "text": dump_yaml([revision.manifest]),
            "change": difference(before, revision) if before else [],
        }
        return self.page(request, "kanade/revision.html", revision, context)
