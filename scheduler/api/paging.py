"""Lists in bounded pages, without counting a large table."""

from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from rest_framework.exceptions import NotFound
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request

from scheduler.rules.texts import problem_of


class Pages(CursorPagination):
    """Keyset pages, newest first; `?page_size=` up to 200.

    A view may name its own `ordering`, one unique column.
    """

    ordering = "-pk"
    page_size = 50
    max_page_size = 200
    page_size_query_param = "page_size"
    invalid_cursor_message = "This cursor is not valid; begin without one."

    def get_ordering(self, request: Request, queryset: QuerySet[Any], view: Any) -> tuple[str, ...]:
        """Return the view's own ordering, or the default; callers never choose one."""
        return (getattr(view, "ordering", None) or str(self.ordering),)

    def paginate_queryset(
        self, queryset: Any, request: Request, view: Any = None
    ) -> list[Any] | None:
        """Return the rows of the page; raise NotFound where the cursor is none of ours."""
        cursor = self.decode_cursor(request)
        if cursor is not None and cursor.position is not None:
            column = self.get_ordering(request, queryset, view)[0].lstrip("-")
            self._check_position(queryset, column, str(cursor.position))
        return super().paginate_queryset(queryset, request, view)

    def _check_position(self, queryset: QuerySet[Any], column: str, position: str) -> None:
        """Refuse a position that the column cannot hold: the database would fail on it."""
        meta = queryset.model._meta  # noqa: SLF001  # public, whatever its name says
        field = meta.pk if column == "pk" else meta.get_field(column)
        try:
            field.to_python(position)
        except ValidationError:
            raise NotFound(self.invalid_cursor_message) from None
        if problem_of(position):
            raise NotFound(self.invalid_cursor_message)
