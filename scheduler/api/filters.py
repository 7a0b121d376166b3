"""What each list can be narrowed by: these names and no others."""

from django.db.models import QuerySet
from django_filters import rest_framework as filters

from scheduler.api.filter_fields import LONGEST, Filters, InstantFilter
from scheduler.models import AuditEntry, Task
from scheduler.models.tasks import TaskQuerySet
from scheduler.rules.states import Outcome, Phase, TaskState

PENDING = TaskState.PENDING.value
_STATES = [(PENDING, PENDING), *((phase.value, phase.value) for phase in Phase)]
_OUTCOMES = [(outcome.value, outcome.value) for outcome in Outcome]


class TaskFilters(Filters):
    """Tasks by what they do now, kind, key and queue."""

    state = filters.ChoiceFilter(choices=_STATES, method="by_state")
    kind = filters.CharFilter(max_length=LONGEST)
    key = filters.CharFilter(max_length=500)
    queue = filters.CharFilter(max_length=LONGEST)

    def by_state(self, rows: TaskQuerySet, _name: str, value: str) -> QuerySet[Task]:
        """Keep those that are stored so, or of which people say so."""
        if value == PENDING:
            return rows.filter(state=value)
        return rows.in_phase(Phase(value), self.now)


class RunFilters(Filters):
    """The runs of one task by how they ended."""

    outcome = filters.ChoiceFilter(choices=_OUTCOMES)


class AuditFilters(Filters):
    """Acts by what was done, by whom, to what, and when.

    `object` is a kind of thing, or one thing as KIND:ID.
    """

    action = filters.CharFilter(max_length=LONGEST)
    actor = filters.CharFilter(field_name="actor_name", max_length=LONGEST)
    object = filters.CharFilter(method="by_object", max_length=LONGEST)
    object_kind = filters.CharFilter(max_length=LONGEST)
    object_id = filters.CharFilter(max_length=LONGEST)
    since = InstantFilter(field_name="at", lookup_expr="gte")
    until = InstantFilter(field_name="at", lookup_expr="lt")

    def by_object(self, rows: QuerySet[AuditEntry], _name: str, value: str) -> QuerySet[AuditEntry]:
        """Keep the acts on a kind of thing, or on one of them."""
        kind, colon, name = value.partition(":")
        found = rows.filter(object_kind=kind)
        return found.filter(object_id=name) if colon else found
