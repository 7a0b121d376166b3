"""The stored manifests, as `apply` takes them back."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from fleet.models import Group, Job, Schedule
from fleet.operations.freezing import OFF, freeze_document
from fleet.operations.groups import group_document
from fleet.rules.manifest import (
    JobManifest,
    Kind,
    ManifestError,
    ScheduleManifest,
    parse_job,
    parse_schedule,
    to_document,
)
from fleet.rules.refusals import NotFound

Document = dict[str, object]
R = TypeVar("R", Group, Job, Schedule)


def export_documents(kind: Kind | None = None, slugs: Sequence[str] = ()) -> Iterator[Document]:
    """The documents of a kind (of all kinds where none is named), or those of the ids alone.

    Without a kind the freeze is among them only while one is set: applying a copy that was made
    earlier must not thaw the fleet. NotFound for an unknown id.
    """
    if kind is None:
        for each in (Kind.GROUP, Kind.JOB, Kind.SCHEDULE):
            yield from _EXPORTS[each](())
        freeze = freeze_document()
        if freeze != OFF:
            yield freeze
    else:
        yield from _EXPORTS[kind](slugs)


def _groups(slugs: Sequence[str]) -> Iterator[Document]:
    for group in _named(list(Group.objects.order_by("slug")), slugs, "group"):
        yield group_document(group)


def _jobs(slugs: Sequence[str]) -> Iterator[Document]:
    rows = list(Job.objects.select_related("latest").order_by("slug"))
    for job in _named(rows, slugs, "job"):
        if job.latest is not None:
            yield _canonical(parse_job, job.latest.manifest)


def _schedules(slugs: Sequence[str]) -> Iterator[Document]:
    for schedule in _named(list(Schedule.objects.order_by("slug")), slugs, "schedule"):
        yield _canonical(parse_schedule, schedule.manifest)


def _freeze(_slugs: Sequence[str]) -> Iterator[Document]:
    yield freeze_document()


def _canonical(
    parse: Callable[[object], JobManifest | ScheduleManifest], stored: Document
) -> Document:
    """The keys in their order, which not every database keeps; as stored where it is not valid."""
    try:
        return to_document(parse(stored))
    except ManifestError:
        return stored


def _named(rows: Sequence[R], slugs: Sequence[str], kind: str) -> Iterator[R]:
    if not slugs:
        yield from rows
        return
    by_slug = {row.slug.casefold(): row for row in rows}
    for slug in slugs:
        if slug.casefold() not in by_slug:
            raise NotFound(f'there is no {kind} "{slug}"')
        yield by_slug[slug.casefold()]


_EXPORTS: dict[Kind, Callable[[Sequence[str]], Iterator[Document]]] = {
    Kind.GROUP: _groups,
    Kind.JOB: _jobs,
    Kind.SCHEDULE: _schedules,
    Kind.FREEZE: _freeze,
}
