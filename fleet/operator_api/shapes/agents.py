"""How PCs and groups are answered."""

from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from fleet.models import Agent
from fleet.rules.liveness import is_alive
from scheduler.api.fields import Moment, StrictText
from scheduler.api.shapes import ReasonBody
from scheduler.api.strict import StrictSerializer

# Each is a transaction of its own.
MOST_AT_ONCE = 500


class AgentOut(serializers.Serializer[Any]):
    """One PC: who it is, how it is, when it was last heard."""

    id = serializers.UUIDField(source="uuid")
    name = serializers.CharField()
    reported_name = serializers.CharField()
    state = serializers.CharField()
    state_reason = serializers.CharField()
    online = serializers.SerializerMethodField()
    last_seen_at = serializers.SerializerMethodField()
    clock_ahead_ms = serializers.SerializerMethodField()
    zone = serializers.CharField()
    groups = serializers.SerializerMethodField()
    facts = serializers.DictField()
    enrolled_at = Moment()
    revoked_at = Moment(allow_null=True)

    @extend_schema_field(serializers.BooleanField())
    def get_online(self, agent: Agent) -> bool:
        """Whether it was heard within the last two minutes."""
        return agent.state == "active" and is_alive(_last_seen(agent), now=self.context["now"])

    @extend_schema_field(Moment(allow_null=True))
    def get_last_seen_at(self, agent: Agent) -> Any:
        """When it was last heard; null = never."""
        seen = _last_seen(agent)
        return None if seen is None else Moment().to_representation(seen)

    @extend_schema_field(serializers.IntegerField(allow_null=True))
    def get_clock_ahead_ms(self, agent: Agent) -> int | None:
        """How far its clock is ahead of the server's; null = never heard."""
        presence = getattr(agent, "presence", None)
        return None if presence is None else presence.skew_ms

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_groups(self, agent: Agent) -> list[str]:
        """The ids of its groups, sorted."""
        return sorted(group.slug for group in agent.groups.all())


def _last_seen(agent: Agent) -> datetime | None:
    # Only an agent that was enrolled by hand has no presence row.
    presence = getattr(agent, "presence", None)
    return None if presence is None else presence.last_seen_at


class GroupOut(serializers.Serializer[Any]):
    """A group in a list; its members are in its own answer."""

    id = serializers.CharField(source="slug")
    description = serializers.CharField()
    size = serializers.IntegerField(help_text="How many PCs are in it.")


class GroupBody(StrictSerializer):
    """One group."""

    group = StrictText(max_length=100)


class GroupsBody(StrictSerializer):
    """All groups of a PC."""

    groups = serializers.ListField(child=StrictText(max_length=100), max_length=1_000)


class PcsBody(ReasonBody):
    """Several PCs, by name or uuid."""

    pcs = serializers.ListField(
        child=StrictText(max_length=255), min_length=1, max_length=MOST_AT_ONCE
    )


class PredecessorBody(ReasonBody):
    """The record that a PC had before it was set up anew, by name or uuid."""

    old = StrictText(max_length=255)


class AcceptedOut(serializers.Serializer[Any]):
    """What became of several PCs."""

    accepted = serializers.ListField(child=serializers.CharField())
    left = serializers.DictField(
        child=serializers.CharField(), help_text="Why each of the others was left as it is."
    )
