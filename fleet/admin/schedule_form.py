"""The form of a schedule: when and where a job runs."""

from typing import Any, ClassVar

from django import forms

from fleet.admin import when_fields
from fleet.admin.document_fields import OTHER, Document, Field, Kind, take
from fleet.admin.manifest_form import ManifestForm, Parsed, YamlField
from fleet.flow.manifests import local_zone
from fleet.models import Group, Job, Schedule
from fleet.rules.manifest import Misfire, RunsOn, parse_schedule
from scheduler.rules.zones import zone_names

MOST_OFFERED = 500
DURATION = "Such as 30s, 5m, 1h 30m or 1d."


class Offering(forms.TextInput):
    """A text with proposals, which the page lists once under `list_id`."""

    def __init__(self, list_id: str) -> None:
        super().__init__(attrs={"list": list_id, "class": "vTextField", "autocomplete": "off"})


def text(label: str, help_text: str = "", **kwargs: Any) -> forms.CharField:
    """An optional line of text: whether it is needed is the manifest's question."""
    return forms.CharField(label=label, required=False, help_text=help_text, **kwargs)


class ScheduleForm(ManifestForm):
    """The usual keys of a schedule's manifest."""

    table: ClassVar[tuple[Field, ...]] = (
        Field("ident", "id"),
        Field("about", "description"),
        Field("job_ident", "job_id"),
        Field("params", "params", Kind.YAML),
        Field("all_pcs", "target.all", Kind.FLAG),
        Field("groups", "target.groups", Kind.WORDS),
        Field("pcs", "target.pcs", Kind.WORDS),
        Field("rollout", "rollout", Kind.YAML),
        Field("jitter", "jitter"),
        Field("starting_deadline", "starting_deadline"),
        Field("active_from", "active.from"),
        Field("active_until", "active.until"),
        Field("window", "constraints.window"),
        Field("skip_dates", "constraints.skip_dates", Kind.WORDS),
        Field("max_concurrent", "constraints.max_concurrent", Kind.NUMBER),
        Field("retry_max", "on_failure.retry.max", Kind.NUMBER),
        Field("retry_backoff", "on_failure.retry.backoff"),
        Field("tz", "tz"),
        Field("misfire", "misfire"),
        Field("runs_on", "runs_on"),
        Field("is_enabled", "enabled", Kind.ON_FLAG),
        Field("tags", "tags", Kind.WORDS),
    )
    paths: ClassVar[dict[str, str]] = {
        **when_fields.PATHS,
        "target": "all_pcs",
        "active": "active_from",
        "on_failure.retry": "retry_max",
    }

    ident = text("Id", "Letters, digits, dots, dashes. It stays for ever.")
    about = text("Description", widget=forms.Textarea(attrs={"rows": 2}))
    job_ident = text("Job", widget=Offering("known-jobs"))
    params = YamlField(label="Parameters", rows=2, help_text="Such as NAME: value.")
    when_shape = forms.ChoiceField(label="When", choices=when_fields.CHOICES)
    when_every = text("Within", f"How long a success counts. {DURATION}")
    when_at = text("At", "HH:MM every day, or YYYY-MM-DD HH:MM once.")
    when_days = text("On", "Such as mon-fri, tue#2 (second Tuesday) or friL. Blank: every day.")
    when_cron = text("Cron", "Minute, hour, day, month, weekday. Such as 30 2 * * mon-fri.")
    tz = text(
        "Zone",
        "local (the server's), utc, or a name such as Europe/Budapest.",
        widget=Offering("known-zones"),
    )
    all_pcs = forms.BooleanField(label="Every PC of the fleet", required=False)
    groups = text("Groups", "Separated by commas.", widget=Offering("known-groups"))
    pcs = text(
        "PCs",
        "Names or uuids, separated by commas or on lines of their own.",
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    rollout = YamlField(
        label="Waves",
        rows=3,
        help_text="Such as waves: [{group: canary, delay: 0s}, {group: office, delay: 1h}].",
    )
    jitter = text("Jitter", f"Spreads the starts over this time. {DURATION}")
    starting_deadline = text("Start within", f"Later than that it does not start. {DURATION}")
    window = text("Window", "Starts only then, such as 22:00-05:00.")
    skip_dates = text("Not on", "Dates such as 2026-12-24, separated by commas.")
    max_concurrent = text("At most at once", "How many PCs may run the job at one time.")
    active_from = text("Active from", "YYYY-MM-DD, or with time and offset.")
    active_until = text("Active until", "YYYY-MM-DD, or with time and offset.")
    retry_max = text("Retries", "1 to 10; the PC tries again by itself.")
    retry_backoff = text("Pause between tries", DURATION)
    misfire = forms.ChoiceField(
        label="Missed times",
        required=False,
        choices=[
            ("", "as usual (skip)"),
            (Misfire.SKIP.value, "skip: leave them out"),
            (Misfire.ONCE.value, "once: run the last one"),
            (Misfire.ALL.value, "all: run every one, 100 at most"),
        ],
        help_text="What becomes of a time at which the server did not look.",
    )
    runs_on = forms.ChoiceField(
        label="Watched by",
        required=False,
        choices=[
            (RunsOn.BACKEND.value, "the server"),
            (RunsOn.AGENT.value, "each PC by itself, also while it is offline"),
        ],
    )
    is_enabled = forms.BooleanField(label="Enabled", required=False, initial=True)
    tags = text("Tags", "Separated by commas.")

    class Meta:
        model = Schedule
        fields: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            # A disabled field is not believed when it is posted.
            self.fields["ident"].disabled = True

    def proposals(self) -> dict[str, list[str]]:
        """What the fields with proposals offer, by the id of their list."""
        return {
            "known-jobs": list(Job.objects.values_list("slug", flat=True)[:MOST_OFFERED]),
            "known-groups": list(Group.objects.values_list("slug", flat=True)[:MOST_OFFERED]),
            "known-zones": ["local", "utc", *sorted(zone_names())],
        }

    def stored(self) -> Document:
        """The stored manifest."""
        return dict(self.instance.manifest)

    def shown(self, document: Document) -> dict[str, object]:
        """What the fields show; a `when` that they cannot say stays with the other keys."""
        rest = dict(document)
        fields = when_fields.to_fields(take(rest, "when"))
        shown = super().shown(rest if fields else document)
        return {**shown, **(fields or {})}

    def written(self) -> Document:
        """The document that the fields say."""
        document = super().written()
        other = self.cleaned_data.get(OTHER) or {}
        # Written as text it counts, and the choice above it does not.
        when = other["when"] if "when" in other else when_fields.to_when(self.cleaned_data)
        return {**document, "when": when}

    def parse(self, document: Document) -> Parsed:
        """The schedule that the fields describe."""
        return parse_schedule(document, local=local_zone())


FIELDSETS: Any = (
    (None, {"fields": ("ident", "about", "job_ident", "is_enabled")}),
    ("When", {"fields": ("when_shape", "when_every", "when_at", "when_days", "when_cron", "tz")}),
    ("Where", {"fields": ("all_pcs", "groups", "pcs")}),
    ("How many, how fast", {"fields": ("max_concurrent", "jitter", "rollout")}),
    ("Only then", {"fields": ("window", "skip_dates", "starting_deadline")}),
    (
        "More",
        {
            "classes": ("collapse",),
            "fields": (
                "active_from",
                "active_until",
                "retry_max",
                "retry_backoff",
                "misfire",
                "runs_on",
                "params",
                "tags",
                "other",
            ),
        },
    ),
)
