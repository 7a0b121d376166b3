"""Tokens of staff for programs."""

from datetime import timedelta
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest

from fleet.admin.base import now_of
from fleet.admin.enrolment_tokens import parsed_ttl
from fleet.admin.shown_once import SecretAdmin
from fleet.admin.verbs import Call, Done, Verb, VerbForm
from fleet.models import ApiToken
from fleet.operations.tokens_of_staff import (
    DEFAULT_TTL,
    LONGEST,
    MAX_NAME,
    SHORTEST,
    make_api_token,
    revoke_api_token,
)
from fleet.templatetags.kanade import ago, pill
from scheduler.admin.acting import actor_of
from scheduler.rules.durations import format_duration


class ApiTokenForm(forms.ModelForm[ApiToken]):
    """What a token is for, and for how long."""

    purpose = forms.CharField(label="For", required=False, max_length=MAX_NAME)
    ttl = forms.CharField(
        label="Good for",
        initial=format_duration(DEFAULT_TTL),
        help_text="Such as 30d; 90d at most.",
    )

    class Meta:
        model = ApiToken
        fields: ClassVar[tuple[str, ...]] = ()

    def clean_ttl(self) -> timedelta:
        """Return the time."""
        return parsed_ttl(self.cleaned_data["ttl"], least=SHORTEST, most=LONGEST)


def _revoke(call: Call[ApiToken]) -> Done:
    revoke_api_token(call.obj, actor=call.actor, now=call.now)
    return Done("The token is withdrawn, from its next use on.")


@admin.register(ApiToken)
class ApiTokenAdmin(SecretAdmin[ApiToken]):
    """One's own tokens; a superuser sees everybody's."""

    form = ApiTokenForm
    fieldsets = ((None, {"fields": ("purpose", "ttl")}),)
    list_select_related = ("user",)
    verbs = (
        Verb(
            name="revoke",
            title="Revoke",
            text="Programs that use the token are turned away from their next call on.",
            permissions=("fleet.view_apitoken", "fleet.change_apitoken"),
            act=_revoke,
            form=VerbForm,
            look="danger",
            fits=lambda token: token.revoked_at is None,
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiToken]:
        """Return the tokens of this person, without their hashes."""
        found = super().get_queryset(request).defer("secret_hash").select_related("user")
        return found if request.user.is_superuser else found.filter(user__pk=request.user.pk or 0)

    def get_fieldsets(self, request: HttpRequest, obj: ApiToken | None = None) -> Any:
        """Return the form's fields, or what is told of a token that exists."""
        if obj is None:
            return self.fieldsets
        told = ("public_id", "name", "user", "expires_at", "revoked_at", "last_used_at")
        return ((None, {"fields": told}),)

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """Return the columns; those that tell an age know this request's moment."""
        now = now_of(request)

        @admin.display(description="state")
        def standing(token: ApiToken) -> str:
            if token.revoked_at is not None:
                return pill("revoked")
            return pill("expired") if token.expires_at <= now else pill("active", "good")

        @admin.display(description="expires")
        def expires(token: ApiToken) -> str:
            return ago(token.expires_at, now)

        @admin.display(description="last used")
        def used(token: ApiToken) -> str:
            return ago(token.last_used_at, now)

        return ["public_id", "name", "user", standing, expires, used]

    def save_model(self, request: HttpRequest, obj: ApiToken, form: Any, change: bool) -> None:
        """Make a token for the person who asks, and for nobody else."""
        if not isinstance(request.user, User):
            raise PermissionDenied
        row, secret = make_api_token(
            request.user,
            ttl=form.cleaned_data["ttl"],
            name=form.cleaned_data["purpose"],
            actor=actor_of(request),
            now=now_of(request),
        )
        self.made(request, obj, row, secret)

    def shown_once(self, secret: str) -> dict[str, Any]:
        """Show the token as a header."""
        return {
            "lines": [
                {"title": "The token", "text": secret},
                {"title": "As a header", "text": f"Authorization: Bearer {secret}"},
            ]
        }
