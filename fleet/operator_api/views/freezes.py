"""The freeze: one record that holds the whole fleet."""

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.flow.freeze import known_freeze, known_row
from fleet.models import Freeze
from fleet.operations.freezing import UNREADABLE, clear_freeze, freeze_document, set_freeze
from fleet.operator_api.documents import FreezeDocument
from fleet.operator_api.resource import Resource, Rights
from fleet.operator_api.shapes.freeze import FreezeOut, shown_freeze
from scheduler.api.shapes import ReasonBody


class Freezes(Resource):
    """The freeze of the fleet."""

    queryset = Freeze.objects.all()
    serializer_class = FreezeOut
    pagination_class = None
    filter_backends = ()
    rights: ClassVar[Rights] = {
        "retrieve": ("fleet.view_freeze",),
        "update": ("fleet.view_freeze", "fleet.set_freeze"),
        "destroy": ("fleet.view_freeze", "fleet.set_freeze"),
    }

    @extend_schema(summary="Read the freeze", responses=FreezeOut)
    def retrieve(self, request: Request) -> Response:
        """Answer the freeze and what it means now; one that cannot be read means frozen."""
        row = known_row()
        document = freeze_document() if row is not None else UNREADABLE
        return Response(shown_freeze(document, known_freeze(self.now), row))

    @extend_schema(summary="Freeze the fleet", request=FreezeDocument, responses=FreezeOut)
    def update(self, request: Request) -> Response:
        """Freeze now or for a period; once this is answered nothing more is handed out."""
        set_freeze(self.document(), actor=self.actor, now=self.now)
        return self.retrieve(request)

    @extend_schema(summary="Thaw the fleet", request=ReasonBody, responses={204: None})
    def destroy(self, request: Request) -> Response:
        """Clear the freeze; also where there is none. 409 where it cannot be read."""
        clear_freeze(actor=self.actor, now=self.now, **self.read(ReasonBody))
        return Response(status=204)
