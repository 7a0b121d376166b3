"""Groups of PCs."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from django.db.models import Count
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.models import Group, Membership
from fleet.operations.groups import delete_group, group_document, save_group
from fleet.operator_api.documents import GroupDocument
from fleet.operator_api.filters import GroupFilters
from fleet.operator_api.resource import Rights
from fleet.operator_api.shapes.agents import GroupOut
from fleet.operator_api.views.manifests import Manifests
from fleet.rules.manifest import parse_group
from fleet.rules.problems import Problem


class Groups(Manifests):
    """Named sets of PCs."""

    queryset = Group.objects.all()
    serializer_class = GroupDocument
    filterset_class = GroupFilters
    right_to_add = "fleet.add_group"
    rights: ClassVar[Rights] = {
        "list": ("fleet.view_group",),
        "retrieve": ("fleet.view_group",),
        "create": ("fleet.add_group",),
        "update": ("fleet.change_group",),
        "partial_update": ("fleet.change_group",),
        "destroy": ("fleet.delete_group",),
    }

    @extend_schema(summary="List groups", responses=GroupOut(many=True))
    def list(self, request: Request) -> Response:
        """Answer a page of groups with their sizes; the members are in each one's own answer."""
        page: Any = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        members = Membership.objects.filter(group__in=page).order_by().values_list("group_id")
        sizes = dict(members.annotate(count=Count("pk")))
        shown = [
            {"slug": row.slug, "description": row.description, "size": sizes.get(row.pk, 0)}
            for row in page
        ]
        return self.get_paginated_response(GroupOut(shown, many=True).data)

    def save(self, document: object, *, must_be_new: bool) -> Group:
        """Store the group; its members are those of the document alone."""
        return save_group(document, actor=self.actor, now=self.now, must_be_new=must_be_new)

    def remove(self, row: Group) -> None:
        """Delete the group; refused while something names it."""
        delete_group(row, actor=self.actor, now=self.now)

    def document_of(self, row: Group) -> Mapping[str, Any]:
        """Return the manifest: id, description, members by name."""
        return group_document(row)

    def warnings_of(self, document: object) -> Iterable[Problem]:
        """Return what is kept without effect."""
        return parse_group(document).warnings
