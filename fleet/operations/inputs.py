"""What verbs take: documents that must be valid, and rows that must be theirs to change."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from django.db import IntegrityError

from fleet.models import Group, Job, Schedule
from fleet.rules.manifest import ManifestError
from fleet.rules.refusals import Conflict, Invalid

T = TypeVar("T")


def valid(parse: Callable[[object], T], document: object) -> T:
    """The manifest that the document describes; Invalid names everything that is wrong."""
    try:
        return parse(document)
    except ManifestError as error:
        raise Invalid(error.problems) from None


def require_free(
    existing: Job | Schedule | Group | None, slug: str, *, must_be_new: bool, set_name: str
) -> None:
    """Refuse to overwrite what must not be there, is spelt otherwise, or is another set's."""
    if existing is None:
        return
    kind = type(existing).__name__.lower()
    if must_be_new:
        raise Conflict(f'there is a {kind} "{existing.slug}" already', field="id")
    if existing.slug != slug:
        raise Conflict(f'there is a {kind} "{existing.slug}" already; write its id so', field="id")
    if set_name and existing.set_name and existing.set_name != set_name:
        raise Conflict(f'belongs to the set "{existing.set_name}"', field="id")


@contextmanager
def racing(what: str) -> Iterator[None]:
    """Turn the loss of a race for the same id into an answer."""
    try:
        yield
    except IntegrityError:
        raise Conflict(f"somebody else has just made this {what}; look again") from None
