"""Staff accounts. Only a superuser touches superusers, roles and single rights."""

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.http import HttpRequest

# Whoever sets one of these decides what somebody may do.
POWERS = ("is_superuser", "groups", "user_permissions")

admin.site.unregister(User)


@admin.register(User)
class StaffAdmin(UserAdmin[User]):
    """Accounts, without a way to raise one's own rights."""

    filter_horizontal = ()
    list_display = ("username", "email", "first_name", "last_name", "is_active", "is_superuser")
    list_filter = ("is_active", "is_superuser", "groups")

    @property
    def media(self) -> forms.Media:
        """The scripts of lists and plain forms: none of them needs jQuery."""
        return forms.Media(js=["admin/js/core.js", "admin/js/actions.js"])

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        """Return the fields that this person may not set."""
        fixed = tuple(super().get_readonly_fields(request, obj))
        return fixed if request.user.is_superuser else (*fixed, *POWERS)

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Answer whether the account may be edited: a superuser's by a superuser alone."""
        return super().has_change_permission(request, obj) and _may_touch(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Answer whether the account may be deleted: a superuser's by a superuser alone."""
        return super().has_delete_permission(request, obj) and _may_touch(request, obj)


def _may_touch(request: HttpRequest, account: User | None) -> bool:
    return bool(account is None or not account.is_superuser or request.user.is_superuser)
