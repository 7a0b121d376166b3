"""What to run: jobs and their immutable revisions."""

from django.db import models
from django.db.models import CheckConstraint, Q, UniqueConstraint
from django.db.models.functions import Lower

from fleet.models.ids import SlugQuerySet


class JobQuerySet(SlugQuerySet["Job"]):
    """Questions about jobs."""


class JobManager(models.Manager["Job"]):
    """All jobs but the deleted ones."""

    def get_queryset(self) -> JobQuerySet:
        """Leave the deleted ones out."""
        return JobQuerySet(self.model, using=self._db).filter(deleted_at=None)

    def with_slug(self, *slugs: str) -> JobQuerySet:
        """The jobs of those ids, whatever their case."""
        return self.get_queryset().with_slug(*slugs)


class Job(models.Model):
    """A named thing to run. Its content is the current revision: the newest allowed to run."""

    slug = models.CharField("id", max_length=100)
    current = models.ForeignKey(
        "fleet.JobRevision", null=True, on_delete=models.PROTECT, related_name="+", editable=False
    )
    # The newest revision, approved or not; what people edit.
    latest = models.ForeignKey(
        "fleet.JobRevision", null=True, on_delete=models.PROTECT, related_name="+", editable=False
    )
    revoked_at = models.DateTimeField(null=True, editable=False)
    # Commands that were handed out and hold a slot of some schedule's max_concurrent.
    slots_taken = models.PositiveIntegerField(default=0, editable=False)
    set_name = models.CharField(max_length=100, blank=True, default="", editable=False)
    created_at = models.DateTimeField(editable=False)
    updated_at = models.DateTimeField(editable=False)
    # The row stays for the history that names it. Made again, the job is this row, still revoked.
    deleted_at = models.DateTimeField(null=True, editable=False)

    objects = JobManager()
    # The deleted ones as well.
    everything = JobQuerySet.as_manager()

    class Meta:
        ordering = ["slug"]
        constraints = [
            UniqueConstraint(Lower("slug"), name="one_job_per_id_whatever_its_case"),
        ]
        permissions = [
            ("run_job", "Can run a job on chosen PCs"),
            ("approve_job", "Can approve a revision or an execution"),
            ("revoke_job", "Can revoke a job and take the revocation back"),
        ]

    def __str__(self) -> str:
        return self.slug


class JobRevision(models.Model):
    """One content of a job, never changed after it was written."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    version = models.CharField(max_length=100)
    manifest = models.JSONField()
    # sha256 of the manifest, and of its `execute` part alone, in canonical form.
    sha256 = models.CharField(max_length=64)
    execute_sha256 = models.CharField(max_length=64)
    requires_approval = models.BooleanField(default=False)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=200)
    created_by_id = models.BigIntegerField(null=True)
    approved_at = models.DateTimeField(null=True)
    approved_by = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        ordering = ["job_id", "-number"]
        constraints = [
            UniqueConstraint(fields=["job", "number"], name="revisions_of_a_job_are_numbered"),
            CheckConstraint(condition=Q(number__gte=1), name="the_first_revision_has_number_one"),
        ]

    def __str__(self) -> str:
        return f"{self.job_id} {self.version} (revision {self.number})"
