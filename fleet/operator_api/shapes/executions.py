"""How executions, their commands and their results are answered."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from fleet.flow.tallies import Standing
from fleet.models import Command, Execution, Result
from scheduler.api.fields import Moment


class TallyOut(serializers.Serializer[Any]):
    """How many commands of an execution stand where."""

    expected = serializers.IntegerField()
    waiting = serializers.IntegerField()
    running = serializers.IntegerField()
    succeeded = serializers.IntegerField()
    failed = serializers.IntegerField()
    skipped = serializers.IntegerField()
    expired = serializers.IntegerField()
    cancelled = serializers.IntegerField()
    outcome_unknown = serializers.IntegerField()


class ExecutionOut(serializers.Serializer[Any]):
    """One dispatch of a job. `counts` is null in a list where there are too many commands."""

    id = serializers.UUIDField()
    job = serializers.CharField(source="job.slug")
    version = serializers.CharField(source="revision.version")
    revision = serializers.IntegerField(source="revision.number")
    schedule = serializers.SerializerMethodField()
    origin = serializers.CharField()
    state = serializers.CharField()
    progress = serializers.SerializerMethodField()
    counts = serializers.SerializerMethodField()
    actor = serializers.CharField()
    reason = serializers.CharField()
    override_freeze = serializers.BooleanField()
    target = serializers.DictField()
    planned = serializers.IntegerField()
    nominal_at = Moment(allow_null=True)
    created_at = Moment()
    deadline_at = Moment()
    ended_at = Moment(allow_null=True)
    end_reason = serializers.CharField()

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_schedule(self, execution: Execution) -> str | None:
        """The id of its schedule, also of one that was deleted; null = run by hand."""
        return execution.schedule_slug or None

    @extend_schema_field(serializers.CharField())
    def get_progress(self, execution: Execution) -> str:
        """The word for how far it has come."""
        return self._standing(execution).word

    @extend_schema_field(TallyOut(allow_null=True))
    def get_counts(self, execution: Execution) -> Any:
        """How its commands stand; null where they were not counted."""
        counted = self._standing(execution).tally
        return None if counted is None else TallyOut(counted).data

    def _standing(self, execution: Execution) -> Standing:
        standing: Standing = self.context["standings"][execution.pk]
        return standing


class StartedOut(ExecutionOut):
    """An execution that somebody has just started."""

    deduplicated = serializers.BooleanField(
        help_text="An earlier request with the same Idempotency-Key had started it."
    )


class WaveOut(serializers.Serializer[Any]):
    """A part of an execution with a time of its own."""

    number = serializers.IntegerField()
    group = serializers.CharField(source="group_slug")
    state = serializers.CharField()
    reason = serializers.CharField()
    due_at = Moment()
    deadline_at = Moment()
    released_at = Moment(allow_null=True)


class ResultOut(serializers.Serializer[Any]):
    """How a command ended; its output has an address of its own."""

    id = serializers.UUIDField(source="command_id", help_text="The id of its command.")
    execution = serializers.UUIDField(source="execution_id", allow_null=True)
    pc = serializers.SerializerMethodField()
    job = serializers.SerializerMethodField()
    schedule = serializers.SerializerMethodField()
    version = serializers.CharField(source="job_version")
    outcome = serializers.CharField()
    exit_code = serializers.IntegerField(allow_null=True)
    reason = serializers.CharField()
    note = serializers.CharField()
    attempt = serializers.IntegerField()
    retries = serializers.IntegerField()
    started_at = Moment(allow_null=True)
    finished_at = Moment(allow_null=True)
    received_at = Moment()
    duration_ms = serializers.IntegerField(allow_null=True)
    late = serializers.BooleanField()
    reaped = serializers.BooleanField()
    conflicts = serializers.IntegerField()

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_pc(self, result: Result) -> str | None:
        """The PC's name; null when the PC is gone."""
        return self._name("pcs", result.agent_id)

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_job(self, result: Result) -> str | None:
        """The job's id; null when the job is gone."""
        return self._name("jobs", result.job_id)

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_schedule(self, result: Result) -> str | None:
        """The schedule's id; null when there is none or it is gone."""
        return self._name("schedules", result.schedule_id)

    def _name(self, kind: str, key: int | None) -> str | None:
        names: dict[int, str] = self.context["names"][kind]
        return None if key is None else names.get(key)


class CommandOut(serializers.Serializer[Any]):
    """One PC's share of an execution, with how it ended."""

    id = serializers.UUIDField()
    pc = serializers.CharField(source="agent.name")
    pc_id = serializers.UUIDField(source="agent.uuid")
    state = serializers.CharField()
    reason = serializers.CharField()
    wave = serializers.IntegerField()
    attempt = serializers.IntegerField()
    created_at = Moment()
    start_after = Moment(allow_null=True)
    deadline_at = Moment()
    handed_out_at = Moment(allow_null=True)
    started_at = Moment(allow_null=True)
    ended_at = Moment(allow_null=True)
    kill_requested_at = Moment(allow_null=True)
    exit_code = serializers.SerializerMethodField()
    late = serializers.SerializerMethodField()

    @extend_schema_field(serializers.IntegerField(allow_null=True))
    def get_exit_code(self, command: Command) -> int | None:
        """The script's exit code; null where there is none (yet)."""
        result = self._result(command)
        return None if result is None else result.exit_code

    @extend_schema_field(serializers.BooleanField())
    def get_late(self, command: Command) -> bool:
        """Whether the answer came after the server had given up waiting for it."""
        result = self._result(command)
        return result is not None and result.late

    def _result(self, command: Command) -> Result | None:
        found: dict[object, Result] = self.context["results"]
        return found.get(command.pk)


class CommandPage(serializers.Serializer[Any]):
    """A page of commands."""

    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    results = CommandOut(many=True)


class ExecutionWithCommandsOut(ExecutionOut):
    """An execution with its waves and a page of its commands."""

    waves = WaveOut(many=True)
    commands = CommandPage()
