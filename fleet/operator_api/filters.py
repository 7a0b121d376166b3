"""What each list can be narrowed by: these names and no others."""

from typing import Any

from django.db.models import QuerySet
from django_filters import rest_framework as filters

from fleet.models import Agent, AgentState, Group, Job, Origin, Schedule, Shape, Stream
from fleet.operator_api.filter_fields import PcFilter, SlugFilter
from fleet.rules.command_states import FAILURES, TERMINAL, CommandState
from fleet.rules.execution_states import ExecutionState
from scheduler.api.filter_fields import LONGEST, Filters, FlagFilter, InstantFilter

_STATES = [(state.value, state.value) for state in CommandState]
_OUTCOMES = [(state.value, state.value) for state in sorted(TERMINAL)]
_EXECUTIONS = [(state.value, state.value) for state in ExecutionState]
_ONLINE = [("online", "online"), ("offline", "offline")]
# The original's words: a failure is a run that went wrong, not one that never began.
_STATUS = [("success", "success"), ("failure", "failure")]


class NameFilters(Filters):
    """Filters of lists of things with an id."""

    q = filters.CharFilter(field_name="slug", lookup_expr="icontains", max_length=LONGEST)


class JobFilters(NameFilters):
    """Jobs by a part of the id, and by whether they are revoked."""

    revoked = FlagFilter(method="by_revoked")

    def by_revoked(self, rows: QuerySet[Job], _name: str, value: str) -> QuerySet[Job]:
        """Keep those that are revoked, or those that are not."""
        return rows.filter(revoked_at__isnull=value != "true")


class ScheduleFilters(NameFilters):
    """Schedules by a part of the id, job, shape, and whether they are enabled."""

    job = SlugFilter(field_name="job_id", rows=Job.everything)
    shape = filters.ChoiceFilter(choices=Shape.choices)
    enabled = FlagFilter()
    runs_on_agent = FlagFilter()


class GroupFilters(NameFilters):
    """Groups by a part of the id, and by one of their PCs."""

    pc = PcFilter(field_name="agents")


class AgentFilters(Filters):
    """PCs by a part of the name, state, group, version of the agent, and whether they answer."""

    q = filters.CharFilter(method="by_name", max_length=LONGEST)
    state = filters.ChoiceFilter(choices=AgentState.choices)
    status = filters.ChoiceFilter(choices=_ONLINE, method="by_status")
    group = SlugFilter(field_name="groups", rows=Group.objects)
    version = filters.CharFilter(field_name="facts__agent_version", max_length=LONGEST)

    def by_name(self, rows: QuerySet[Agent], _name: str, value: str) -> QuerySet[Agent]:
        """Keep those with `value` in the name, whatever its case."""
        return rows.filter(name_fold__contains=value.casefold())

    def by_status(self, rows: QuerySet[Agent], _name: str, value: str) -> QuerySet[Agent]:
        """Keep those that were heard lately, or active ones that were not."""
        alive = Agent.objects.alive(self.now).values("pk")
        if value == "online":
            return rows.filter(pk__in=alive)
        return rows.filter(state=AgentState.ACTIVE).exclude(pk__in=alive)


class ExecutionFilters(Filters):
    """Executions by job, schedule, PC, state, who asked, and time."""

    job = SlugFilter(field_name="job_id", rows=Job.everything)
    schedule = SlugFilter(field_name="schedule_id", rows=Schedule.objects)
    pc = PcFilter(field_name="commands__agent_id")
    state = filters.ChoiceFilter(choices=_EXECUTIONS)
    origin = filters.ChoiceFilter(choices=Origin.choices)
    since = InstantFilter(field_name="created_at", lookup_expr="gte")
    until = InstantFilter(field_name="created_at", lookup_expr="lt")


class CommandFilters(Filters):
    """The commands of one execution by state and PC."""

    state = filters.ChoiceFilter(choices=_STATES)
    pc = PcFilter(field_name="agent_id")


class ResultFilters(Filters):
    """Results by job, schedule, PC, execution, outcome and time."""

    job = SlugFilter(field_name="job_id", rows=Job.everything)
    schedule = SlugFilter(field_name="schedule_id", rows=Schedule.objects)
    pc = PcFilter(field_name="agent_id")
    execution = filters.UUIDFilter(field_name="execution_id")
    outcome = filters.ChoiceFilter(choices=_OUTCOMES)
    status = filters.ChoiceFilter(choices=_STATUS, method="by_status")
    late = FlagFilter()
    since = InstantFilter(field_name="received_at", lookup_expr="gte")
    until = InstantFilter(field_name="received_at", lookup_expr="lt")

    def by_status(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        """Keep the successes, or the runs that went wrong."""
        if value == "success":
            return rows.filter(outcome=CommandState.SUCCEEDED.value)
        return rows.filter(outcome__in=[state.value for state in FAILURES])


class OutputFilters(Filters):
    """Which of the two streams."""

    stream = filters.ChoiceFilter(choices=Stream.choices)
