"""Lists in bounded pages, without counting a large table."""

from rest_framework.pagination import CursorPagination


class Pages(CursorPagination):
    """Keyset pages, newest first; `?page_size=` up to 200.

    A view may name its own `ordering`; it must end in a unique column.
    """

    ordering = "-pk"
    page_size = 50
    max_page_size = 200
    page_size_query_param = "page_size"
