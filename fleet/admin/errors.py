"""Where an error is shown: at the field that it is about, else above the form."""

from collections.abc import Iterable, Mapping

from django import forms

from fleet.rules.problems import ManifestError, Problem
from fleet.rules.refusals import Invalid, Refusal


def show_refusal(
    form: forms.BaseForm, refusal: Refusal, fields: Mapping[str, str] | None = None
) -> None:
    """Add a refusal to the form; `fields` maps dotted paths of a document to fields."""
    if isinstance(refusal, Invalid):
        show_problems(form, refusal.problems, fields)
    else:
        show_problems(form, [Problem(refusal.field or "", refusal.message)], fields)


def show_problems(
    form: forms.BaseForm,
    problems: Iterable[Problem],
    fields: Mapping[str, str] | None = None,
) -> None:
    """Add each problem at its field, or above the form with its whole path."""
    for problem in problems:
        name = field_of(problem.path, fields or {}, form.fields)
        form.add_error(name, problem.message if name else str(problem))


def show_manifest_error(
    form: forms.BaseForm, error: ManifestError, fields: Mapping[str, str]
) -> None:
    """Add what a manifest's parser found."""
    show_problems(form, error.problems, fields)


def field_of(path: str, fields: Mapping[str, str], known: Mapping[str, object]) -> str | None:
    """The field for a dotted path: that of the path itself or of the nearest part around it."""
    while path:
        name = fields.get(path, path)
        if name in known:
            return name
        cut = max(path.rfind("."), path.rfind("["))
        path = path[:cut] if cut > 0 else ""
    return None
