"""Where an error is shown: at the field that it is about, else above the form."""

import re
from collections.abc import Iterable, Mapping

from django import forms

from fleet.rules.problems import Problem
from fleet.rules.refusals import Invalid, Refusal

_ENTRY = re.compile(r"\[[0-9]+\]")


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
        name, inside = place_of(problem.path, fields or {}, form.fields)
        if name is None:
            form.add_error(None, str(problem))
        else:
            form.add_error(name, f"{inside}: {problem.message}" if inside else problem.message)


def place_of(
    path: str, fields: Mapping[str, str], known: Mapping[str, object]
) -> tuple[str | None, str]:
    """The field for a dotted path, and which key inside that field is meant.

    The field is that of the path itself or of the nearest part around it; an entry of a list is
    named by its own text already.
    """
    around = path
    while around:
        name = fields.get(around, around)
        if name in known:
            return name, _ENTRY.sub("", path[len(around) :]).lstrip(".")
        cut = max(around.rfind("."), around.rfind("["))
        around = around[:cut] if cut > 0 else ""
    return None, ""
