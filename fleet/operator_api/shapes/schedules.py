"""How schedules are, beside their manifests, and what is sent to act on one."""

from typing import Any

from rest_framework import serializers

from scheduler.api.fields import Moment, StrictFlag
from scheduler.api.shapes import ReasonBody


class DisableBody(ReasonBody):
    """What else stops with the schedule."""

    cascade = StrictFlag(required=False, default=False, help_text="Revoke its job too.")
    cascade_kill = StrictFlag(
        required=False, default=False, help_text="Revoke its job and stop what runs of it."
    )


class FireBody(ReasonBody):
    """Why it is fired by hand, and whether although the fleet is frozen."""

    override_freeze = StrictFlag(required=False, default=False)


class FireOut(serializers.Serializer[Any]):
    """One fire to come: the same instant in UTC and on the schedule's own clock."""

    utc = Moment()
    local = serializers.CharField()


class PreviewOut(serializers.Serializer[Any]):
    """The next fires that the schedule's own constraints allow; the freeze is not asked."""

    when = serializers.CharField(help_text="In words.")
    tz = serializers.CharField(help_text="The zone that the schedule means.")
    enabled = serializers.BooleanField()
    fires = FireOut(many=True)
    note = serializers.CharField(help_text="Why there are none, where there are none.")
    warnings = serializers.ListField(child=serializers.CharField())
