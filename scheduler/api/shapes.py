"""How tasks, runs and audit entries are answered, and what is sent to make or change a task."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from scheduler.api.fields import (
    CleanText,
    Delay,
    Instant,
    Moment,
    StrictFlag,
    StrictNumber,
)
from scheduler.api.strict import StrictSerializer
from scheduler.engine.facts import standing_of
from scheduler.models import Task
from scheduler.rules import orders
from scheduler.rules.fire import LONGEST_DELAY, MOST_RETRIES, Retry
from scheduler.rules.forecasts import Forecast, forecast
from scheduler.rules.misfire import Misfire
from scheduler.rules.standing import words

LARGEST_ID = 2**63 - 1
LONGEST_REASON = 1_000
LONGEST_ZONE = 64
DEFAULT = Retry()


class RetryShape(StrictSerializer):
    """How often a failed run is tried again, and the delay in seconds, doubled up to `max`."""

    times = StrictNumber(min_value=0, max_value=MOST_RETRIES, default=DEFAULT.times)
    min = StrictNumber(min_value=0, max_value=LONGEST_DELAY, default=DEFAULT.min)
    max = StrictNumber(min_value=0, max_value=LONGEST_DELAY, default=DEFAULT.max)

    def to_internal_value(self, data: object) -> Any:
        """Return the policy."""
        return Retry(**super().to_internal_value(data))


class TaskOut(serializers.Serializer[Any]):
    """A task as lists show it."""

    id = serializers.IntegerField()
    kind = serializers.CharField()
    key = serializers.CharField(allow_null=True)
    state = serializers.CharField()
    phase = serializers.SerializerMethodField()
    words = serializers.SerializerMethodField()
    reason = serializers.CharField()
    queue = serializers.CharField()
    priority = serializers.IntegerField()
    due = Moment(source="due_at", allow_null=True)
    not_before = Moment(allow_null=True)
    waits_for = serializers.IntegerField()
    cron = serializers.SerializerMethodField(help_text="The one in force.")
    cron_override = serializers.CharField(allow_null=True, help_text="What staff typed.")
    tz = serializers.CharField()
    day_rule = serializers.CharField()
    misfire = serializers.CharField()
    occurrence_at = Moment(allow_null=True)
    retry = RetryShape(allow_null=True)
    retry_count = serializers.IntegerField()
    attempt = serializers.IntegerField()
    runs = serializers.IntegerField()
    started_at = Moment(allow_null=True)
    ended_at = Moment(allow_null=True)
    created_at = Moment()
    updated_at = Moment()

    @extend_schema_field(serializers.CharField())
    def get_phase(self, task: Task) -> str:
        """What it does, in one word."""
        return task.phase(self.context["now"]).value

    @extend_schema_field(serializers.CharField())
    def get_words(self, task: Task) -> str:
        """What it does, in words for people."""
        return words(standing_of(task), now=self.context["now"])

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_cron(self, task: Task) -> str | None:
        """Staff's cron before code's."""
        return task.cron_override or task.cron


class ForecastOut(serializers.Serializer[Any]):
    """When a recurring task runs, in words and by its next fires."""

    words = serializers.CharField()
    rule = serializers.CharField(help_text="What happens where the clock is changed.")
    next = serializers.SerializerMethodField()
    per_day = serializers.IntegerField()
    warnings = serializers.ListField(child=serializers.CharField())
    problem = serializers.CharField(help_text="Why it cannot be read; empty when it can.")

    @extend_schema_field(serializers.ListField(child=serializers.DictField()))
    def get_next(self, seen: Forecast) -> list[dict[str, str]]:
        """Each fire in UTC and on the clock of its zone."""
        return [
            {
                "utc": fire.isoformat().replace("+00:00", "Z"),
                "local": fire.astimezone(seen.zone).isoformat(),
            }
            for fire in seen.fires
        ]


class TaskDetailOut(TaskOut):
    """A task with everything that is known about it."""

    registered_cron = serializers.CharField(
        source="cron", allow_null=True, help_text="What code registered."
    )
    input = serializers.JSONField(allow_null=True)
    result = serializers.JSONField(allow_null=True)
    last_error = serializers.CharField()
    crashes = serializers.IntegerField(source="crash_count")
    dropped_requests = serializers.IntegerField(source="dropped")
    depends_on = serializers.SerializerMethodField()
    needed_by = serializers.SerializerMethodField()
    recurrence = serializers.SerializerMethodField()

    @extend_schema_field(serializers.ListField(child=serializers.IntegerField()))
    def get_depends_on(self, _task: Task) -> list[int]:
        """The tasks that it waits for, at most 100 of them."""
        found: list[int] = self.context["depends_on"]
        return found

    @extend_schema_field(serializers.ListField(child=serializers.IntegerField()))
    def get_needed_by(self, _task: Task) -> list[int]:
        """Tasks that wait for it, at most 100 of them."""
        found: list[int] = self.context["needed_by"]
        return found

    @extend_schema_field(ForecastOut(allow_null=True))
    def get_recurrence(self, task: Task) -> Any:
        """When it recurs; null = it does not."""
        if task.recurrence is None:
            return None
        return ForecastOut(forecast(task.recurrence, now=self.context["now"])).data


class RunOut(serializers.Serializer[Any]):
    """One run that ended. A traceback stands where it failed."""

    id = serializers.IntegerField()
    attempt = serializers.IntegerField()
    outcome = serializers.CharField()
    due = Moment(source="due_at", allow_null=True)
    occurrence_at = Moment(allow_null=True)
    started_at = Moment(allow_null=True)
    ended_at = Moment()
    runner = serializers.CharField(source="runner_name")
    error = serializers.CharField()
    trace = serializers.CharField()
    missed = serializers.IntegerField(help_text="Occurrences given up before it.")
    dropped_request = serializers.BooleanField()


class ReasonBody(StrictSerializer):
    """Why."""

    reason = CleanText(required=False, default="", allow_blank=True, max_length=LONGEST_REASON)


class TaskBody(StrictSerializer):
    """A request for a task, as `scheduler.public.request` takes it."""

    kind = CleanText(max_length=orders.LONGEST_KIND)
    key = CleanText(
        required=False, allow_null=True, allow_blank=True, max_length=orders.LONGEST_KEY
    )
    input = serializers.JSONField(required=False, allow_null=True)
    at = Instant(required=False, allow_null=True)
    after = Delay(required=False, allow_null=True)
    cron = CleanText(required=False, allow_null=True, max_length=orders.LONGEST_CRON)
    tz = CleanText(required=False, max_length=LONGEST_ZONE)
    day_rule = serializers.ChoiceField(choices=["or", "and"], required=False)
    retry = RetryShape(required=False, allow_null=True)
    depends_on = serializers.ListField(
        child=StrictNumber(min_value=1, max_value=LARGEST_ID), required=False, max_length=1_000
    )
    require_success = StrictFlag(required=False)
    run_on_startup = StrictFlag(required=False)
    misfire = serializers.ChoiceField(choices=[one.value for one in Misfire], required=False)
    priority = StrictNumber(
        required=False, min_value=orders.LOWEST_PRIORITY, max_value=orders.HIGHEST_PRIORITY
    )
    queue = CleanText(required=False, max_length=orders.LONGEST_QUEUE)
    coalesce = StrictFlag(required=False)


class TaskChanges(ReasonBody):
    """What of a task can be changed. A cron of null brings back the one that code registered."""

    cron = CleanText(required=False, allow_null=True, max_length=orders.LONGEST_CRON)
    retry = RetryShape(required=False, allow_null=True)
    due = Instant(required=False)


class QueueBody(ReasonBody):
    """Which queue."""

    queue = CleanText(max_length=orders.LONGEST_QUEUE)


class AuditOut(serializers.Serializer[Any]):
    """Who did what to which thing, and what it was before and after."""

    id = serializers.IntegerField()
    at = Moment()
    actor_kind = serializers.CharField()
    actor = serializers.CharField(source="actor_name")
    address = serializers.CharField()
    action = serializers.CharField()
    object_kind = serializers.CharField()
    object_id = serializers.CharField()
    before = serializers.JSONField(allow_null=True)
    after = serializers.JSONField(allow_null=True)
    reason = serializers.CharField()
