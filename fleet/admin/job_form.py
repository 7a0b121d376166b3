"""The form of a job: what to run."""

from typing import Any, ClassVar

from django import forms

from fleet.admin.document_fields import Document, Field, Kind
from fleet.admin.manifest_form import CodeArea, ManifestForm, Parsed, YamlField
from fleet.models import Job
from fleet.rules.manifest import RunAs, Shell, parse_job
from fleet.rules.refusals import Invalid
from fleet.rules.versions import bumped

BUMP = "_bump"


class JobForm(ManifestForm):
    """The usual keys of a job's manifest."""

    table: ClassVar[tuple[Field, ...]] = (
        Field("ident", "id"),
        Field("version", "version"),
        Field("about", "description"),
        Field("tags", "tags", Kind.WORDS),
        Field("require_approval", "require_approval", Kind.FLAG),
        Field("shell", "execute.shell"),
        Field("script", "execute.script"),
        Field("timeout", "execute.timeout"),
        Field("run_as", "execute.run_as"),
        Field("cwd", "execute.cwd"),
        Field("max_output", "execute.max_output", Kind.NUMBER),
        Field("params", "execute.params", Kind.YAML),
    )
    paths: ClassVar[dict[str, str]] = {"execute": "script"}

    ident = forms.CharField(
        label="Id", required=False, help_text="Letters, digits, dots, dashes. It stays for ever."
    )
    version = forms.CharField(
        required=False,
        help_text="Free text such as 1.2.0. A changed script needs a new version.",
    )
    about = forms.CharField(
        label="Description", required=False, widget=forms.Textarea(attrs={"rows": 2})
    )
    tags = forms.CharField(required=False, help_text="Separated by commas.")
    require_approval = forms.BooleanField(
        required=False, help_text="A second person approves each change and each run by hand."
    )
    shell = forms.ChoiceField(choices=[(shell.value, shell.value) for shell in Shell])
    script = forms.CharField(
        required=False,
        strip=False,
        widget=CodeArea(16),
        help_text="Parameters reach it as environment variables KANADE_P_<NAME>.",
    )
    timeout = forms.CharField(
        required=False, initial="5m", help_text="Such as 30s, 5m or 1h 30m; 1s to 24h."
    )
    run_as = forms.ChoiceField(
        label="Run as",
        required=False,
        choices=[(RunAs.SYSTEM.value, "the agent's account"), (RunAs.USER.value, "the user there")],
    )
    cwd = forms.CharField(label="Folder", required=False, help_text="Where the script starts.")
    max_output = forms.CharField(
        label="Output kept", required=False, help_text="Such as 256KiB, which is the default."
    )
    params = YamlField(
        label="Parameters",
        help_text="Such as NAME: default, or NAME: {required: true}.",
    )

    class Meta:
        model = Job
        fields: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            # A disabled field is not believed when it is posted.
            self.fields["ident"].disabled = True

    @property
    def proposal(self) -> str:
        """The version to save as, when the one that was typed is used for another content."""
        refused = self.refusal.problems if isinstance(self.refusal, Invalid) else ()
        if not any(problem.path == "version" for problem in refused):
            return ""
        return bumped(str(self.data.get("version", "")).strip())

    def clean_version(self) -> str:
        """Return the version that was typed, or the proposed one if that button was pressed."""
        typed = str(self.cleaned_data["version"])
        return bumped(typed) if BUMP in self.data else typed

    def stored(self) -> Document:
        """The newest revision's manifest, which is what people edit."""
        latest = self.instance.latest
        return dict(latest.manifest) if latest else {"id": self.instance.slug}

    def parse(self, document: Document) -> Parsed:
        """The job that the fields describe."""
        return parse_job(document)


FIELDSETS: Any = (
    (None, {"fields": ("ident", "version", "about", "tags")}),
    ("What runs", {"fields": ("shell", "script", "timeout", "run_as", "cwd", "max_output")}),
    ("More", {"fields": ("params", "require_approval", "other")}),
)
