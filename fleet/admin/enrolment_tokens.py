"""Tokens with which PCs enrol."""

from datetime import timedelta
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from fleet.admin.base import now_of
from fleet.admin.shown_once import SecretAdmin
from fleet.admin.verbs import Call, Done, Verb, VerbForm
from fleet.models import EnrolmentToken, Group
from fleet.operations.enrolment_tokens import (
    DEFAULT_TTL,
    LONGEST,
    MOST_USES,
    SHORTEST,
    make_enrolment_token,
    revoke_enrolment_token,
)
from fleet.templatetags.kanade import NOTHING, ago, pill
from scheduler.admin.acting import actor_of
from scheduler.rules.durations import format_duration, parse_duration

RIGHTS = ("fleet.view_enrolmenttoken", "fleet.manage_enrolment")


def parsed_ttl(text: str, *, least: timedelta, most: timedelta) -> timedelta:
    """How long a token is good for, within the bounds; ValidationError says what would be right."""
    try:
        ttl = parse_duration(text)
    except ValueError as error:
        raise forms.ValidationError(str(error)) from error
    if not least <= ttl <= most:
        raise forms.ValidationError(
            f"write a time from {format_duration(least)} to {format_duration(most)}"
        )
    return ttl


class EnrolmentTokenForm(forms.ModelForm[EnrolmentToken]):
    """For how many PCs a token is, and for how long."""

    into = forms.ModelChoiceField(
        label="Group", queryset=Group.objects.all(), required=False, empty_label="no group"
    )
    uses = forms.IntegerField(
        label="PCs", min_value=1, max_value=MOST_USES, initial=1, help_text="How many may use it."
    )
    ttl = forms.CharField(
        label="Good for", initial=format_duration(DEFAULT_TTL), help_text="Such as 24h; 7d at most."
    )
    acceptance = forms.BooleanField(
        label="An operator accepts each PC",
        required=False,
        initial=True,
        help_text="Until then the PC gets no work. Wise for a token for several PCs.",
    )

    class Meta:
        model = EnrolmentToken
        fields: ClassVar[tuple[str, ...]] = ()

    def clean_ttl(self) -> timedelta:
        """Return the time."""
        return parsed_ttl(self.cleaned_data["ttl"], least=SHORTEST, most=LONGEST)


def _revoke(call: Call[EnrolmentToken]) -> Done:
    revoke_enrolment_token(call.obj, actor=call.actor, now=call.now)
    return Done("Nobody enrols with it any more.")


@admin.register(EnrolmentToken)
class EnrolmentTokenAdmin(SecretAdmin[EnrolmentToken]):
    """Tokens for new PCs; only their public parts are kept."""

    form = EnrolmentTokenForm
    fieldsets = ((None, {"fields": ("into", "uses", "ttl", "acceptance")}),)
    list_select_related = ("group",)
    verbs = (
        Verb(
            name="revoke",
            title="Revoke",
            text="Nobody enrols with the token any more. PCs that did stay.",
            permissions=RIGHTS,
            act=_revoke,
            form=VerbForm,
            look="danger",
            fits=lambda token: token.revoked_at is None,
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[EnrolmentToken]:
        """Return the tokens without their hashes."""
        return super().get_queryset(request).defer("secret_hash")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Answer whether this person may make tokens: the model's right and the act's own."""
        return super().has_add_permission(request) and request.user.has_perms(RIGHTS)

    def get_fieldsets(self, request: HttpRequest, obj: EnrolmentToken | None = None) -> Any:
        """Return the form's fields, or what is told of a token that exists."""
        if obj is None:
            return self.fieldsets
        told = ("public_id", "group", "used", "max_uses", "needs_acceptance", "expires_at")
        return ((None, {"fields": (*told, "revoked_at", "created_by", "created_at")}),)

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """Return the columns; those that tell an age know this request's moment."""
        now = now_of(request)

        @admin.display(description="state")
        def standing(token: EnrolmentToken) -> str:
            if token.revoked_at is not None:
                return pill("revoked")
            if token.expires_at <= now:
                return pill("expired")
            return pill("used up") if token.used >= token.max_uses else pill("active", "good")

        @admin.display(description="expires")
        def expires(token: EnrolmentToken) -> str:
            return ago(token.expires_at, now)

        return ["public_id", standing, "uses", "into", expires, "created_by"]

    @admin.display(description="used")
    def uses(self, token: EnrolmentToken) -> str:
        """Return how many PCs have used it."""
        return f"{token.used} of {token.max_uses}"

    @admin.display(description="group")
    def into(self, token: EnrolmentToken) -> str:
        """Return the group its PCs are put into."""
        return token.group.slug if token.group else NOTHING

    def save_model(
        self, request: HttpRequest, obj: EnrolmentToken, form: Any, change: bool
    ) -> None:
        """Make the token by its verb."""
        data = form.cleaned_data
        row, secret = make_enrolment_token(
            group=data["into"],
            uses=data["uses"],
            ttl=data["ttl"],
            needs_acceptance=data["acceptance"],
            actor=actor_of(request),
            now=now_of(request),
        )
        self.made(request, obj, row, secret)

    def shown_once(self, secret: str) -> dict[str, Any]:
        """Show the token in the one line that enrols a PC, for each system."""
        server = settings.KANADE_BASE_URL or "https://THIS-SERVER"
        line = f"kanade-agent.pyz --server {server} --enrol {secret} --once --state-dir"
        return {
            "lines": [
                {
                    "title": "On a PC with Linux, beside the file kanade-agent.pyz",
                    "text": f"sudo python3 {line} /var/lib/kanade-agent",
                },
                {
                    "title": "On a PC with Windows, in a PowerShell of an administrator",
                    "text": f"py -3 {line} C:\\ProgramData\\kanade-agent",
                },
                {"title": "The token alone", "text": secret},
            ],
            "note": "The PC enrols and the command ends. Then start the agent as a service: "
            "docs/howto/enrol-an-agent.md has a unit for systemd and a script for Windows.",
        }
