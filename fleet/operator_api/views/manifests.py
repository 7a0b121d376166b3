"""What jobs, schedules and groups have in common: documents that are read and written whole."""

import json
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, ClassVar

from django.db import transaction
from django.db.models import Model
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.models.ids import SlugQuerySet
from fleet.operator_api.addresses import row_of_slug
from fleet.operator_api.merging import merged
from fleet.operator_api.resource import Resource
from fleet.rules.problems import Problem

MOST_WARNINGS = 20


class Manifests(Resource):
    """The verbs of things that are a manifest with an id."""

    lookup_url_kwarg = "id"
    lookup_value_converter: ClassVar[str] = "fleet_slug"
    ordering = "slug"
    # What PUT needs as well where there is nothing to change yet.
    right_to_add: ClassVar[str]

    def save(self, document: object, *, must_be_new: bool) -> Model:
        """Store the document by the domain's verb; return its row."""
        raise NotImplementedError

    def remove(self, row: Any) -> None:
        """Delete the row by the domain's verb."""
        raise NotImplementedError

    def document_of(self, row: Any) -> Mapping[str, Any]:
        """Return the manifest of a row."""
        raise NotImplementedError

    def warnings_of(self, document: object) -> Iterable[Problem]:
        """Return what is accepted in the document and has no effect."""
        raise NotImplementedError

    def statuses_of(self, rows: Sequence[Any]) -> Mapping[int, Any]:
        """Return by key what `?include=status` adds to the rows of a page."""
        raise exceptions.ValidationError({"include": ["there is no status to include here"]})

    def list(self, request: Request) -> Response:
        """Answer a page of manifests; `?include=status` adds how each one is."""
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        return self.get_paginated_response(self._shown(page))

    def create(self, request: Request) -> Response:
        """Store a new one; 409 where the id is taken."""
        row = self.save(self.document(), must_be_new=True)
        return self._stored(row, created=True)

    def retrieve(self, request: Request, id: str) -> Response:
        """Answer the manifest, as it may be sent back."""
        return Response(self._shown([self.row(id)])[0])

    def update(self, request: Request, id: str) -> Response:
        """Store the manifest under this id, whether there is one yet or not."""
        document = self._document_for(id)
        is_new = not self.rows().with_slug(id).exists()
        if is_new:
            self.require(self.right_to_add)
        row = self.save(document, must_be_new=False)
        return self._stored(row, created=is_new)

    def partial_update(self, request: Request, id: str) -> Response:
        """Change the keys that are sent; null removes one."""
        change = self.document()
        with transaction.atomic():
            # Two changes at once follow each other, so that none is lost.
            row = self.row(id, locked=True)
            document = merged(self.document_of(row), change)
            _require_same_id(document, id)
            row = self.save(document, must_be_new=False)
        return self._stored(row, created=False)

    def destroy(self, request: Request, id: str) -> Response:
        """Delete it; 409 while something needs it."""
        self.remove(self.row(id))
        return Response(status=HTTPStatus.NO_CONTENT)

    def rows(self) -> SlugQuerySet[Any]:
        """Return all rows of this kind."""
        rows = self.get_queryset()
        assert isinstance(rows, SlugQuerySet)
        return rows

    def row(self, slug: str, *, locked: bool = False) -> Any:
        """Return the row that the address names, or answer 404."""
        rows = self.rows()
        return row_of_slug(rows.select_for_update(of=("self",)) if locked else rows, slug)

    def _document_for(self, slug: str) -> dict[str, Any]:
        document = self.document()
        _require_same_id(document, slug)
        return document

    def _shown(self, rows: Sequence[Any]) -> Sequence[Mapping[str, Any]]:
        if self._includes_no_status():
            return [self.document_of(row) for row in rows]
        statuses = self.statuses_of(rows)
        return [{**self.document_of(row), "status": statuses[row.pk]} for row in rows]

    def _includes_no_status(self) -> bool:
        included = self.request.query_params.get("include", "")
        if included not in {"", "status"}:
            raise exceptions.ValidationError({"include": ["write status, or leave it out"]})
        return not included

    def _stored(self, row: Any, *, created: bool) -> Response:
        document = self.document_of(self.row(row.slug))
        response = Response(document, status=HTTPStatus.CREATED if created else HTTPStatus.OK)
        if created:
            response.headers["Location"] = self.reverse_action("detail", args=[row.slug])
        warnings = [str(problem) for problem in self.warnings_of(document)][:MOST_WARNINGS]
        if warnings:
            response.headers["Kanade-Warnings"] = json.dumps(warnings)
        return response


def _require_same_id(document: object, slug: str) -> None:
    """Refuse a document with another id than the address: it would store a second thing."""
    found = document.get("id") if isinstance(document, dict) else None
    if isinstance(found, str) and found.lower() != slug.lower():
        raise exceptions.ValidationError({"id": [f'is not the id of the address, "{slug}"']})
