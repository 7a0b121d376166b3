"""A form over a manifest: fields for its usual keys, YAML for the rest, errors at the field."""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from django import forms

from fleet.admin.document_fields import OTHER, Document, Field, to_document, to_fields
from fleet.admin.errors import show_problems, show_refusal
from fleet.rules.documents import DocumentError, load_yaml
from fleet.rules.problems import ManifestError, Problem
from fleet.rules.refusals import Refusal


class Parsed(Protocol):
    """What all manifests have."""

    @property
    def document(self) -> dict[str, object]:
        """The canonical form."""

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """What is kept without effect."""


class CodeArea(forms.Textarea):
    """A text in a typewriter's face, as wide as the page."""

    def __init__(self, rows: int) -> None:
        super().__init__(
            attrs={"class": "code", "rows": rows, "spellcheck": "false", "autocapitalize": "off"}
        )


class YamlField(forms.CharField):
    """A part of a document as YAML; its value is what the YAML means, None where it is blank."""

    def __init__(self, *, rows: int = 4, **kwargs: Any) -> None:
        super().__init__(required=False, strip=False, widget=CodeArea(rows), **kwargs)

    def clean(self, value: Any) -> Any:
        """Return the value of the one document."""
        text = super().clean(value)
        if not text.strip():
            return None
        try:
            documents = load_yaml(text)
        except DocumentError as error:
            raise forms.ValidationError(str(error)) from error
        if len(documents) > 1:
            raise forms.ValidationError(f"line {documents[1].line}: only one document belongs here")
        return documents[0].value if documents else None


class ManifestForm(forms.ModelForm[Any]):
    """The base of the forms over jobs and schedules.

    `refusal` is the answer of a verb that has refused this very input: it is shown at its field.
    """

    table: ClassVar[tuple[Field, ...]] = ()
    # Paths of the document whose field is not named in the table.
    paths: ClassVar[Mapping[str, str]] = {}
    refusal: ClassVar[Refusal | None] = None

    other = YamlField(
        label="Other keys",
        rows=5,
        help_text="Keys of the manifest that have no field here, as YAML.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.manifest: Parsed | None = None
        if self.instance.pk:
            self.initial = {**self.shown(self.stored()), **self.initial}

    def stored(self) -> Document:
        """The stored document of the row that is edited."""
        raise NotImplementedError

    def parse(self, document: Document) -> Parsed:
        """The manifest of a document; ManifestError names everything that is wrong."""
        raise NotImplementedError

    def shown(self, document: Document) -> dict[str, object]:
        """What the fields show for a document."""
        return to_fields(document, self.table)

    def written(self) -> Document:
        """The document that the fields say."""
        other = self.cleaned_data.get(OTHER) or {}
        return to_document(self.cleaned_data, self.table, other)

    def clean(self) -> dict[str, Any]:
        """Judge the document as a whole, and show each problem where it was typed."""
        super().clean()
        other = self.cleaned_data.get(OTHER)
        if other is not None and not isinstance(other, dict):
            self.add_error(OTHER, "write keys with their values, for example tags: [office]")
            return self.cleaned_data
        wrong = set(self.errors)
        try:
            self.manifest = self.parse(self.written())
        except ManifestError as error:
            # What a field has already complained about is not said twice.
            problems = [
                problem for problem in error.problems if self.place_of(problem) not in wrong
            ]
            show_problems(self, problems, self.places())
        if self.refusal is not None:
            show_refusal(self, self.refusal, self.places())
        return self.cleaned_data

    def places(self) -> dict[str, str]:
        """The field of each path."""
        return {**{field.path: field.name for field in self.table}, **self.paths}

    def place_of(self, problem: Problem) -> str | None:
        """The field at which a problem is shown; a key without one belongs to the last field."""
        return self.places().get(problem.path)
