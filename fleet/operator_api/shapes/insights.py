"""How the questions about a schedule are answered: how is it, how far, and why not."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from fleet.flow.status import Status
from scheduler.api.fields import Moment


class LastRunOut(serializers.Serializer[Any]):
    """The latest run of the schedule's job; `outcome` is null while it runs."""

    id = serializers.CharField(source="command_id", help_text="The id of its command.")
    outcome = serializers.CharField(allow_null=True)
    exit_code = serializers.IntegerField(allow_null=True)
    ended_at = Moment(allow_null=True)


class EvaluationOut(serializers.Serializer[Any]):
    """What the ticks decide about the schedule, since when, and why."""

    reason = serializers.CharField()
    detail = serializers.CharField()
    since = Moment()
    opens_at = Moment(allow_null=True)
    counts = serializers.DictField(child=serializers.IntegerField())


class DayOut(serializers.Serializer[Any]):
    """Runs of the schedule's job that ended within 24 hours, whoever asked for them."""

    ok = serializers.IntegerField()
    failed = serializers.IntegerField()


class StatusOut(serializers.Serializer[Any]):
    """How a schedule is."""

    enabled = serializers.BooleanField()
    next_run = Moment(allow_null=True, help_text="The next fire, or when the next PC is due.")
    last_run = LastRunOut(allow_null=True)
    last_24h = DayOut()
    evaluation = EvaluationOut(allow_null=True)


def shown_status(status: Status, *, enabled: bool) -> Any:
    """Return the answer on how a schedule is."""
    return StatusOut(
        {
            "enabled": enabled,
            "next_run": status.next_run,
            "last_run": status.last_run,
            "last_24h": status,
            "evaluation": status.evaluation,
        }
    ).data


class CoveredOut(serializers.Serializer[Any]):
    """How one PC stands; without version and time while it runs."""

    pc = serializers.CharField(source="name")
    id = serializers.CharField(source="uuid")
    state = serializers.CharField()
    version = serializers.CharField()
    ended_at = Moment(allow_null=True)


class CoveredPage(serializers.Serializer[Any]):
    """A page of PCs by name."""

    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    results = CoveredOut(many=True)


class CoverageOut(serializers.Serializer[Any]):
    """M of N done, PCs that are off included."""

    total = serializers.IntegerField()
    ok = serializers.IntegerField()
    failed = serializers.IntegerField(source="fail")
    running = serializers.IntegerField()
    pending = serializers.IntegerField()


class CoverageWithPcsOut(CoverageOut):
    """The counts, and a page of the PCs."""

    pcs = CoveredPage()


class GateOut(serializers.Serializer[Any]):
    """What one gate says, with the values that it saw."""

    gate = serializers.CharField(source="reason")
    open = serializers.BooleanField(source="is_open")
    detail = serializers.CharField()
    opens_at = Moment(allow_null=True)


class AgentViewOut(serializers.Serializer[Any]):
    """How far one PC comes; `reason` null = the schedule does not mean it."""

    pc = serializers.CharField(source="name")
    id = serializers.CharField(source="uuid")
    reason = serializers.CharField(allow_null=True)
    words = serializers.CharField()
    until = Moment(allow_null=True)
    last_seen_at = Moment(allow_null=True)


class PastCommandOut(serializers.Serializer[Any]):
    """What the PC was given of the schedule's job."""

    id = serializers.UUIDField()
    execution = serializers.UUIDField(source="execution_id", allow_null=True)
    version = serializers.CharField(source="revision.version")
    state = serializers.CharField()
    reason = serializers.CharField()
    created_at = Moment()
    ended_at = Moment(allow_null=True)


class ExplanationOut(serializers.Serializer[Any]):
    """Every gate in order, and what they come to; `reason` null = nothing is kept of that time."""

    schedule = serializers.CharField(source="schedule.slug")
    at = Moment()
    tense = serializers.CharField()
    reason = serializers.CharField(allow_null=True)
    words = serializers.CharField()
    detail = serializers.CharField()
    opens_at = Moment(allow_null=True)
    gates = GateOut(many=True)
    counts = serializers.DictField(child=serializers.IntegerField())
    agents = serializers.SerializerMethodField()
    agent = AgentViewOut(allow_null=True)
    commands = PastCommandOut(many=True)
    notes = serializers.ListField(child=serializers.CharField())

    @extend_schema_field(serializers.DictField(child=AgentViewOut(many=True)))
    def get_agents(self, explanation: Any) -> dict[str, Any]:
        """Some PCs for each gate that stops any."""
        return {
            reason: AgentViewOut(views, many=True).data
            for reason, views in explanation.agents.items()
        }
