"""The audit entries of a test, in order."""

from scheduler.models import AuditEntry


def acts() -> list[tuple[str, str, str]]:
    """(action, kind, id) of every act."""
    rows = AuditEntry.objects.order_by("pk")
    return [(row.action, row.object_kind, row.object_id) for row in rows]
