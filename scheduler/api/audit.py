"""The audit: who did what, newest first."""

from typing import ClassVar

from rest_framework.mixins import ListModelMixin, RetrieveModelMixin

from scheduler.api.filters import AuditFilters
from scheduler.api.resource import Resource, Rights
from scheduler.api.shapes import AuditOut
from scheduler.models import AuditEntry


class Audit(ListModelMixin, RetrieveModelMixin, Resource):
    """Acts of people, tokens, commands and agents."""

    queryset = AuditEntry.objects.all()
    serializer_class = AuditOut
    filterset_class = AuditFilters
    lookup_value_converter = "int"
    rights: ClassVar[Rights] = {
        "list": ("scheduler.view_auditentry",),
        "retrieve": ("scheduler.view_auditentry",),
    }
