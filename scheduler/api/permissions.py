"""Nothing is allowed unless a view says so."""

from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request


class DenyAll(BasePermission):
    """The default: a view that names no permission is closed."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Answer no."""
        return False


class SignedInStaff(BasePermission):
    """A signed-in, active member of staff, by session or token."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Answer whether the caller is staff."""
        # None where nobody is signed in.
        user: Any = request.user
        return bool(user and user.is_active and user.is_staff)


class HasRights(SignedInStaff):
    """Staff who hold, for the verb or action at hand, every right that the view names.

    A view has `rights: dict[str, tuple[str, ...]]` from action name (or lower-case HTTP method for
    plain views) to permission names. A verb that is not named is closed.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        """Answer whether the caller holds the rights of this action."""
        if not super().has_permission(request, view):
            return False
        rights: dict[str, tuple[str, ...]] = getattr(view, "rights", {})
        action = getattr(view, "action", None) or (request.method or "").lower()
        needed = rights.get(action)
        if action in {"metadata", "options"} or needed is None:
            return False
        return bool(request.user.has_perms(needed))
