"""Refusals of the domain as the errors of HTTP."""

from typing import assert_never

from rest_framework import exceptions

from fleet.rules.problems import ManifestError, Problem
from fleet.rules.refusals import Conflict, Invalid, NotAllowed, NotFound, Refusal
from scheduler.api.problems import Conflict as ConflictError


def as_api_error(refusal: Refusal | ManifestError) -> exceptions.APIException:
    """Return the error that answers a refusal: 400, 403, 404 or 409, with the field to blame."""
    match refusal:
        case ManifestError():
            # What is sent is refused by a verb, as Invalid: this is a row that is there already.
            return ConflictError(f"What is stored of it cannot be read: {refusal}")
        case Invalid(problems=problems):
            return exceptions.ValidationError(by_path(problems))
        case NotFound():
            return exceptions.NotFound(_detail(refusal))
        case NotAllowed():
            return exceptions.PermissionDenied(_detail(refusal))
        case Conflict():
            return ConflictError(_detail(refusal))
        case Refusal():
            return exceptions.ValidationError(_detail(refusal))
        case _:
            assert_never(refusal)


def by_path(problems: tuple[Problem, ...]) -> dict[str, list[str]]:
    """Return the messages under their dotted paths; those without one concern the whole."""
    found: dict[str, list[str]] = {}
    for problem in problems:
        found.setdefault(problem.path or "non_field_errors", []).append(problem.message)
    return found


def _detail(refusal: Refusal) -> dict[str, list[str]] | str:
    return {refusal.field: [refusal.message]} if refusal.field else refusal.message
