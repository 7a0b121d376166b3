"""Who calls: a program, by its owner's API token.

A token is found by its public part and compared as a hash; its rights are what its owner may do at
this moment. Every failure has one text, so that nothing is learned from trying.
"""

from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from fleet.models import ApiToken
from fleet.operations import tokens

CHALLENGE = 'Bearer realm="kanade"'
FAILED = "The token is not valid."
USE_IS_NOTED_EVERY = timedelta(minutes=1)
# Compared against where no row is found, so that an unknown id takes as long as a wrong secret.
_NOBODY = "0" * 64


class BearerToken(BaseAuthentication):
    """`Authorization: Bearer kap1_…`; other schemes are left to the next authenticator."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        """Return the owner and the token, None without a bearer token; raise on a bad one."""
        scheme, _, text = get_authorization_header(request).partition(b" ")
        if scheme.lower() != b"bearer":
            return None
        now = timezone.now()
        row = find_token(text.strip().decode("latin-1"), now=now)
        if row is None:
            raise AuthenticationFailed(FAILED)
        note_use(row, now=now)
        return row.user, row

    def authenticate_header(self, request: Request) -> str:
        """Return the challenge of a 401."""
        return CHALLENGE


def find_token(text: str, *, now: datetime) -> ApiToken | None:
    """Return the row of a token that opens something now, its active owner with it, else None."""
    token = tokens.parse_token(text, tokens.Purpose.API)
    if token is None:
        return None
    row = ApiToken.objects.select_related("user").filter(public_id=token.public_id).first()
    right = tokens.matches(token, row.secret_hash if row else _NOBODY)
    if row is None or not right or not is_usable(row, now=now):
        return None
    return row


def is_usable(row: ApiToken, *, now: datetime) -> bool:
    """Answer whether a token is neither revoked nor expired, and its owner still active."""
    return row.revoked_at is None and now < row.expires_at and row.user.is_active


def note_use(row: ApiToken, *, now: datetime) -> None:
    """Write down that the token was used, at most once a minute: reading must stay cheap."""
    seen = row.last_used_at
    if seen is not None and now - seen < USE_IS_NOTED_EVERY:
        return
    # Only where nobody else noted it meanwhile.
    ApiToken.objects.filter(pk=row.pk, last_used_at=seen).update(last_used_at=now)


class BearerTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # the package's registry
    """How the OpenAPI document names these tokens."""

    target_class = "fleet.operator_api.authentication.BearerToken"
    name = "apiToken"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        """Return the security scheme."""
        return {"type": "http", "scheme": "bearer", "bearerFormat": "kap1"}
