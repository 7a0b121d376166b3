"""The row that an address names, or 404."""

from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet
from django.http import Http404

from fleet.models import Agent
from fleet.models.ids import SlugQuerySet
from scheduler.rules.texts import problem_of

M = TypeVar("M", bound=Model)
LONGEST_NAME = 255


class SlugConverter:
    """An operator's id in an address: what no id can be is no address of ours."""

    regex = "[A-Za-z0-9][A-Za-z0-9._-]{0,99}"

    def to_python(self, value: str) -> str:
        """Return the id as written."""
        return value

    def to_url(self, value: str) -> str:
        """Return the id as written."""
        return value


def row_of_slug(rows: SlugQuerySet[M], slug: str) -> M:
    """Return the row of that id, whatever its case; raise Http404."""
    return _found(rows.with_slug(slug))


def agent_named(rows: QuerySet[Agent], name: str) -> Agent:
    """Return the PC of that name or uuid; raise Http404."""
    if len(name) > LONGEST_NAME or problem_of(name):
        raise Http404
    return _found(rows.filter(pk__in=Agent.objects.named(name).values("pk")))


def row_of_id(rows: QuerySet[M], key: UUID) -> M:
    """Return the row of that uuid; raise Http404."""
    return _found(rows.filter(pk=key))


def _found(rows: QuerySet[M, Any]) -> M:
    row: M | None = rows.first()
    if row is None:
        raise Http404
    return row
