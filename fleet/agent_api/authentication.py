"""Who calls: an agent, by its credential and by nothing else.

The credential counts in the Authorization header alone, and is asked for in the database at every
request. An agent is no user and never becomes one.
"""

from datetime import datetime
from typing import NoReturn

from django.http import HttpRequest
from rest_framework.exceptions import AuthenticationFailed

from fleet.models import AgentState
from fleet.models.callers import Caller, find_caller
from fleet.operations.credentials import credential_in, holds, rotated_before

CHALLENGE = 'Bearer realm="kanade agents"'
# One text for all reasons, so that nothing can be learned from it.
FAILED = "The credential is not valid."


def authenticated(request: HttpRequest, *, now: datetime) -> Caller:
    """Return the agent of `Authorization: Bearer kag1_…`; AuthenticationFailed for all others."""
    scheme, _, text = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    credential = credential_in(text) if scheme.lower() == "bearer" else None
    if credential is None:
        _fail()
    caller = find_caller(credential.public_id, rotated_before=rotated_before(now))
    if caller is None or caller.state == AgentState.REVOKED:
        _fail()
    if not holds(caller, credential, now=now):
        _fail()
    return caller


def _fail() -> NoReturn:
    error = AuthenticationFailed(FAILED)
    error.auth_header = CHALLENGE  # type: ignore[attr-defined]  # as DRF's own views set it
    raise error
