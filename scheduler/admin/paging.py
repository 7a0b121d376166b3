"""Lists without a full count: nobody needs to know that there are exactly 4,812,377 results."""

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.utils.functional import cached_property

# Lists count so far and no further.
MOST_COUNTED = 10_000


class CappedPaginator(Paginator):  # type: ignore[type-arg]  # Django's is not generic at run time
    """Counts at most MOST_COUNTED rows; what lies behind them is reached by a filter."""

    @cached_property
    def count(self) -> int:
        """The number of rows, or MOST_COUNTED where there are more."""
        rows = self.object_list
        if isinstance(rows, QuerySet):
            return rows.order_by()[:MOST_COUNTED].count()
        return len(rows)
