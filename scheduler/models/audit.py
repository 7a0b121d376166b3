"""Who did what: one row for each act of a person, a token, a command or an agent."""

from django.conf import settings
from django.db import models
from django.db.models import Index


class AuditEntry(models.Model):
    """One act, written in the transaction of the act itself. Rows are only ever added."""

    at = models.DateTimeField()
    actor_kind = models.CharField(max_length=10)
    actor_name = models.CharField(max_length=200)
    # The account may be deleted later; the name stays.
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    address = models.CharField(max_length=64, blank=True, default="")
    action = models.CharField(max_length=100)
    object_kind = models.CharField(max_length=50)
    object_id = models.CharField(max_length=200)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    reason = models.TextField(blank=True, default="")

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "audit entries"
        # Audit entries are read, never edited: there is nothing to permit but that.
        default_permissions = ("view",)
        indexes = [
            Index(fields=["at"], name="audit_by_time"),
            Index(fields=["object_kind", "object_id", "id"], name="audit_by_object"),
            Index(fields=["actor_name", "id"], name="audit_by_actor"),
        ]

    def __str__(self) -> str:
        """Name it for people."""
        return f"{self.actor_name}: {self.action} {self.object_kind} {self.object_id}"
