"""Jobs: what can be run."""

from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import F, QuerySet
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html

from fleet.admin import cells, job_form, job_verbs
from fleet.admin.job_page import awaits_approval, job_page
from fleet.admin.manifest_admin import ManifestAdmin, deletion
from fleet.flow.tallies import Live, live_of
from fleet.models import Job
from fleet.operations.jobs import delete_job, save_job
from fleet.templatetags.kanade import NOTHING, drawn, pill
from scheduler.rules.looks import OK, RUN

DELETED = (
    "It is revoked first, and starts nowhere any more. Its revisions, runs and results "
    "stay as history. A job that a schedule uses is not deleted."
)
LIVE = "_kanade_live"


class JobList(ChangeList):
    """A page of jobs with what is under way of each, counted together."""

    def get_results(self, request: HttpRequest) -> None:
        """Read the page, and count the open executions of its jobs in one query."""
        super().get_results(request)
        rows = list(self.result_list)
        live = live_of(rows)
        for row in rows:
            row.__dict__[LIVE] = live.get(row.pk, Live())
        self.result_list = rows

    def url_for_result(self, result: Any) -> str:
        """Lead to the page of the job, not to its form."""
        return reverse("admin:fleet_job_overview", args=[result.pk])


class JobStateFilter(admin.SimpleListFilter):
    """Revoked, or waiting for approval."""

    title = "state"
    parameter_name = "is"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the words."""
        return [("revoked", "revoked"), ("waiting", "not approved")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:
        """Return the jobs of that state."""
        match self.value():
            case "revoked":
                return queryset.filter(revoked_at__isnull=False)
            case "waiting":
                approved = queryset.filter(latest=F("current"))
                return queryset.exclude(pk__in=approved.values("pk"))
        return queryset


@admin.register(Job)
class JobAdmin(ManifestAdmin[Job]):
    """What can be run, and how it is doing."""

    form = job_form.JobForm
    fieldsets = job_form.FIELDSETS
    verbs = (*job_verbs.VERBS, deletion(Job, delete_job, DELETED))
    save_verb = staticmethod(save_job)
    delete_verb = staticmethod(delete_job)
    search_fields = ("slug",)
    list_filter = (JobStateFilter,)
    lookups: ClassVar[frozenset[str]] = frozenset({"is"})
    list_display = ("ident", "version", "shell", "standing", "live", "about")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        """Return the jobs with what a list says of them, and no script."""
        found = super().get_queryset(request).select_related("current", "latest")
        if request.resolver_match and request.resolver_match.url_name == "fleet_job_changelist":
            found = found.defer("current__manifest", "latest__manifest")
        return found.annotate(
            shell_name=KeyTextTransform("shell", KeyTransform("execute", "latest__manifest")),
            description=KeyTextTransform("description", "latest__manifest"),
        )

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """Return the list that counts."""
        return JobList

    @admin.display(description="id", ordering="slug")
    def ident(self, job: Job) -> str:
        """Return the id."""
        return job.slug

    @admin.display(description="version")
    def version(self, job: Job) -> str:
        """Return the version that runs, and the one that waits."""
        runs = job.current.version if job.current else NOTHING
        if not awaits_approval(job):
            return runs
        newer = job.latest.version if job.latest else ""
        return format_html("{} {}", runs, pill("not approved", f"{newer} awaits approval"))

    @admin.display(description="shell")
    def shell(self, job: Job) -> str:
        """Return what runs the script."""
        return cells.short(job.__dict__.get("shell_name") or NOTHING)

    @admin.display(description="state")
    def standing(self, job: Job) -> str:
        """Return whether it may start."""
        if job.revoked_at is not None:
            return pill("revoked")
        return drawn(OK, "may run") if job.current_id else pill("not approved")

    @admin.display(description="under way")
    def live(self, job: Job) -> str:
        """Return how many executions are open."""
        live: Live = job.__dict__.get(LIVE, Live())
        if not live.running and not live.pending:
            return NOTHING
        return drawn(RUN, f"{live.running} running, {live.pending} pending")

    @admin.display(description="description")
    def about(self, job: Job) -> str:
        """Return the beginning of the description."""
        return cells.short(job.__dict__.get("description") or "")

    def document_of(self, obj: Job) -> dict[str, object]:
        """Return what people edit: the newest revision's manifest."""
        return dict(obj.latest.manifest) if obj.latest else {"id": obj.slug}

    def object_url(self, obj: Job) -> str:
        """Return the job's page."""
        return reverse("admin:fleet_job_overview", args=[obj.pk])

    def get_urls(self) -> list[Any]:
        """Return our page, and the admin's own."""
        overview = self.own_url("<int:object_id>/overview/", self.overview_view, "overview")
        return [overview, *super().get_urls()]

    def overview_view(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Show the job's page."""
        job = self.get_visible(request, str(object_id))
        context = {
            "title": job.slug,
            "page": job_page(job),
            "verbs": self.buttons(request, job),
            "may_change": self.has_change_permission(request, job),
        }
        return self.page(request, "kanade/job.html", job, context)
