"""Identities that leave the server: never re-used, ordered by time; and ids that operators give."""

import uuid
from typing import Self, TypeVar

import uuid_utils.compat
from django.db.models import Model, QuerySet
from django.db.models.functions import Lower

M = TypeVar("M", bound=Model)


def new_id() -> uuid.UUID:
    """Return a fresh uuid7."""
    return uuid_utils.compat.uuid7()


class SlugQuerySet(QuerySet[M]):
    """Questions about rows that an operator named; ids that differ in case only are the same."""

    def with_slug(self, *slugs: str) -> Self:
        """The rows of those ids, whatever their case."""
        # As the unique index has it, so that this is a lookup in it.
        return self.alias(slug_fold=Lower("slug")).filter(
            slug_fold__in=[slug.lower() for slug in slugs]
        )
