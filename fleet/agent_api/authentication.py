"""Who calls: an agent, by its credential and by nothing else.

An agent is no user: `request.user` stays empty and `request.auth` is the caller. The credential
counts in the Authorization header alone, and is asked for in the database at every request.
"""

from typing import Any

from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from fleet.flow.callers import Caller, find_caller
from fleet.models import AgentState
from fleet.operations.credentials import credential_in, holds

CHALLENGE = 'Bearer realm="kanade agents"'
# One text for all reasons, so that nothing can be learned from it.
FAILED = "The credential is not valid."


class AgentCredential(BaseAuthentication):
    """`Authorization: Bearer kag1_…` of an agent that is not revoked."""

    def authenticate(self, request: Request) -> tuple[None, Caller]:
        """Return the caller as the request's auth; raise for everybody else."""
        scheme, _, text = get_authorization_header(request).decode("latin-1").partition(" ")
        credential = credential_in(text) if scheme.lower() == "bearer" else None
        caller = find_caller(credential.public_id) if credential else None
        if credential is None or caller is None or caller.agent.state == AgentState.REVOKED:
            raise AuthenticationFailed(FAILED)
        context: dict[str, Any] = request.parser_context
        if not holds(caller.agent, credential, now=context["view"].now):
            raise AuthenticationFailed(FAILED)
        return None, caller

    def authenticate_header(self, request: Request) -> str:
        """Return the challenge of a 401."""
        return CHALLENGE


class IsAgent(BasePermission):
    """An agent, and nobody else."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Answer whether an agent calls."""
        return isinstance(request.auth, Caller)
