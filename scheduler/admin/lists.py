"""What all lists and pages share: bounded lists, closed lookups, no second history."""

from datetime import datetime
from typing import Any, ClassVar, TypeVar

from django import forms
from django.contrib import admin
from django.core.exceptions import BadRequest, PermissionDenied
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import URLPattern, path, reverse
from django.utils import timezone

from scheduler.admin.paging import CappedPaginator

M = TypeVar("M", bound=Model)


def now_of(request: HttpRequest) -> datetime:
    """The one moment of this request: the clock is read once."""
    known = request.META.get("kanade.now")
    if not isinstance(known, datetime):
        known = request.META["kanade.now"] = timezone.now()
    return known


class BoundedAdmin(admin.ModelAdmin[M]):
    """A list whose cost does not grow with its table."""

    show_full_result_count = False
    paginator = CappedPaginator
    list_per_page = 50
    list_max_show_all = 50
    sortable_by: ClassVar[tuple[str, ...]] = ()
    view_on_site = False
    # Counting each choice of a filter would read the whole table.
    show_facets = admin.ShowFacets.NEVER
    # The query parameters that a list takes; every other one is turned away.
    lookups: ClassVar[frozenset[str]] = frozenset()

    # Columns that may be large and that a list does not show.
    large: ClassVar[tuple[str, ...]] = ()

    def get_queryset(self, request: HttpRequest) -> QuerySet[M]:
        """Return the rows; a list leaves the large columns in the database."""
        rows = super().get_queryset(request)
        match = request.resolver_match
        is_list = match is not None and str(match.url_name).endswith("_changelist")
        return rows.defer(*self.large) if is_list else rows

    @property
    def media(self) -> forms.Media:
        """The scripts of lists and plain forms: none of them needs jQuery."""
        return forms.Media(js=["admin/js/core.js", "admin/js/actions.js"])

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Answer whether a list may be narrowed by `lookup`: only what is named here."""
        return lookup in self.lookups

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        """Show the list under its own name; no row has a NUL in it, and a database fails on one."""
        if any("\0" in value for _, values in request.GET.lists() for value in values):
            raise BadRequest("a query holds no NUL character")
        title = str(self.opts.verbose_name_plural).capitalize()
        return super().changelist_view(request, {"title": title, **(extra_context or {})})

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        """Write nothing: the verb has written the audit entry."""

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        """Write nothing: the verb has written the audit entry."""

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        """Write nothing: the verb has written the audit entry."""

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Lead to the audit entries about this object."""
        found = self.get_object(request, object_id)
        if found is None:
            raise Http404
        if not self.has_view_permission(request, found):
            raise PermissionDenied
        query = f"object_kind={self.audit_kind()}&object_id={self.audit_id(found)}"
        return HttpResponseRedirect(f"{reverse('admin:scheduler_auditentry_changelist')}?{query}")

    def audit_kind(self) -> str:
        """How audit entries call this kind of object."""
        return str(self.opts.model_name)

    def audit_id(self, obj: M) -> str:
        """How audit entries name this object."""
        return str(obj)

    def url_name(self, page: str) -> str:
        """The full name of one of this model's pages, for `reverse`."""
        return f"admin:{self.opts.app_label}_{self.opts.model_name}_{page}"

    def get_visible(self, request: HttpRequest, object_id: str) -> M:
        """The object, or the error page of a missing or forbidden one."""
        found = self.get_object(request, object_id)
        if found is None:
            raise Http404
        if not self.has_view_permission(request, found):
            raise PermissionDenied
        return found

    def page(
        self, request: HttpRequest, template: str, obj: M | None, context: dict[str, Any]
    ) -> HttpResponse:
        """Draw a page of ours inside the admin's frame."""
        whole = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "original": obj,
            "now": now_of(request),
            **context,
        }
        request.current_app = self.admin_site.name
        return render(request, template, whole)

    def own_url(self, route: str, view: Any, page: str) -> URLPattern:
        """The address of a page of ours, for signed-in staff."""
        name = f"{self.opts.app_label}_{self.opts.model_name}_{page}"
        return path(route, self.admin_site.admin_view(view), name=name)  # type: ignore[no-any-return]  # Django's path is overloaded for Any


class ReadOnlyAdmin(BoundedAdmin[M]):
    """Rows that only the machinery writes: seen, never edited and never deleted here."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Answer no."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        """Answer no."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        """Answer no."""
        return False
