"""Apply manifests: every document on its own, or all of them or none."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import transaction

from fleet.flow.manifests import local_zone
from fleet.flow.published import Published
from fleet.operations.freezing import freeze_document, set_freeze
from fleet.operations.groups import store_group
from fleet.operations.jobs import store_job
from fleet.operations.pruning import prune_set
from fleet.operations.schedules import store_schedule
from fleet.rules.apply_plan import Action, Given, Located, Plan, Step
from fleet.rules.differences import differences
from fleet.rules.manifest import (
    Kind,
    ManifestError,
    identity,
    kind_of,
    parse_job,
    parse_schedule,
)
from fleet.rules.names import BadNameError, parse_slug
from fleet.rules.preview import diagnostics
from fleet.rules.problems import Problem
from fleet.rules.refusals import Invalid, Refusal
from scheduler.public import Actor

# Groups before those who name them, jobs before their schedules.
_ORDER = (Kind.GROUP, Kind.JOB, Kind.SCHEDULE, Kind.FREEZE)
BAD_DOCUMENTS = "some documents are bad, and what they describe would be deleted"


@dataclass(frozen=True, slots=True)
class _By:
    actor: Actor
    now: datetime
    set_name: str


def apply_documents(
    documents: Sequence[Given],
    *,
    actor: Actor,
    now: datetime,
    dry_run: bool = False,
    atomic: bool = False,
    set_name: str = "",
    prune: bool = False,
) -> Plan:
    """Store every document; a bad one does not stop the others, unless `atomic`.

    What is stored belongs to the set `set_name` if one is given; `prune` then deletes what belongs
    to it and is not among the documents. With `dry_run` all is done and undone: the plan says what
    would happen. Invalid for a bad set; the problems of documents are in the plan.
    """
    _require_set(set_name, prune=prune)
    by = _By(actor, now, set_name)
    with transaction.atomic() if dry_run or atomic else nullcontext():
        plan = _applied(documents, by, prune=prune)
        if dry_run or (atomic and plan.bad):
            transaction.set_rollback(True)
            return replace(plan, is_applied=False)
    return plan


def _require_set(set_name: str, *, prune: bool) -> None:
    if prune and not set_name:
        raise Invalid([Problem("set", "name the set that is pruned")])
    if set_name:
        try:
            parse_slug(set_name)
        except BadNameError as error:
            raise Invalid([Problem("set", str(error))]) from None


def _applied(documents: Sequence[Given], by: _By, *, prune: bool) -> Plan:
    steps = [_step(step, given, by) for step, given in _in_order(documents)]
    if not prune:
        return Plan(tuple(steps), is_applied=True)
    if any(step.action is Action.BAD for step in steps):
        return Plan(tuple(steps), is_applied=True, not_pruned=BAD_DOCUMENTS)
    kept = {(step.kind, step.id.casefold()) for step in steps if step.kind is not None}
    steps.extend(prune_set(by.set_name, kept, actor=by.actor, now=by.now))
    return Plan(tuple(steps), is_applied=True)


def _in_order(documents: Sequence[Given]) -> list[tuple[Step, Given]]:
    """The documents with what is known of them before anything is stored."""
    seen: dict[tuple[Kind, str], Given] = {}
    found: list[tuple[Step, Given]] = []
    for given in documents:
        step = _looked_at(given)
        named = step.kind and (step.id or step.kind is Kind.FREEZE)
        key = (step.kind, step.id.casefold()) if step.kind and named else None
        if key is not None and key in seen:
            first = seen[key]
            message = f"stands twice, first in {first.source}:{first.document.line}"
            step = _bad(step, given, [Problem("", message)])
        elif key is not None:
            seen[key] = given
        found.append((step, given))
    place = {kind: number for number, kind in enumerate(_ORDER)}
    return sorted(found, key=lambda one: place[one[0].kind] if one[0].kind else len(place))


def _looked_at(given: Given) -> Step:
    document = given.document
    step = Step(Action.UNCHANGED, None, identity(document.value), given.source, document.line)
    if document.problems:
        return _bad(step, given, document.problems)
    try:
        return replace(step, kind=kind_of(document.value))
    except ManifestError as error:
        return _bad(step, given, error.problems)


def _bad(step: Step, given: Given, problems: Sequence[Problem]) -> Step:
    return replace(step, action=Action.BAD, problems=_located(given, problems))


def _located(given: Given, problems: Sequence[Problem]) -> tuple[Located, ...]:
    return tuple(
        Located(given.source, given.document.line_of(one.path), one.path, one.message)
        for one in problems
    )


def _step(step: Step, given: Given, by: _By) -> Step:
    if step.action is Action.BAD or step.kind is None:
        return step
    try:
        change, before, after = _store(step.kind, given.document.value, by)
    except Invalid as refusal:
        return _bad(step, given, refusal.problems)
    except Refusal as refusal:
        return _bad(step, given, [Problem(refusal.field or "", refusal.message)])
    changes = tuple(differences(before, after)) if change is Action.UPDATE else ()
    warnings = _located(given, list(_warnings(step.kind, given.document.value, by.now)))
    return replace(step, action=change, changes=changes, warnings=warnings)


_Stored = tuple[Action, dict[str, object] | None, dict[str, object]]


def _store(kind: Kind, value: object, by: _By) -> _Stored:
    if kind is Kind.FREEZE:
        before = freeze_document()
        set_freeze(value, actor=by.actor, now=by.now)
        after = freeze_document()
        return (Action.UNCHANGED if before == after else Action.UPDATE), before, after
    store = _STORES[kind]
    published = store(value, actor=by.actor, now=by.now, set_name=by.set_name)
    return Action(published.change), published.before, published.after


def _warnings(kind: Kind, value: object, now: datetime) -> Iterator[Problem]:
    """What is kept without effect, and what will not do what it seems to say."""
    if kind is Kind.JOB:
        yield from parse_job(value).warnings
    elif kind is Kind.SCHEDULE:
        schedule = parse_schedule(value)
        yield from schedule.warnings
        for note in diagnostics(schedule, now=now, local=local_zone()):
            yield Problem("", note)


_STORES: dict[Kind, Callable[..., Published[Any]]] = {
    Kind.GROUP: store_group,
    Kind.JOB: store_job,
    Kind.SCHEDULE: store_schedule,
}
