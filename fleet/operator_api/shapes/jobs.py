"""How jobs are, beside their manifests, and what is sent to act on one."""

from typing import Any

from rest_framework import serializers

from scheduler.api.fields import Moment, StrictFlag, StrictNumber, StrictText
from scheduler.api.shapes import ReasonBody
from scheduler.api.strict import StrictSerializer


class LiveOut(serializers.Serializer[Any]):
    """How many open executions have begun to answer, and how many have not."""

    running = serializers.IntegerField()
    pending = serializers.IntegerField()


class JobStatusOut(serializers.Serializer[Any]):
    """Which revision runs, which is the newest, and what of it is under way."""

    revision = serializers.IntegerField(help_text="The newest revision.")
    version = serializers.CharField()
    current_revision = serializers.IntegerField(
        allow_null=True, help_text="The one that runs; null = none is approved yet."
    )
    current_version = serializers.CharField(allow_null=True)
    waits_for_approval = serializers.BooleanField()
    revoked = serializers.BooleanField()
    revoked_at = Moment(allow_null=True)
    live = LiveOut()


class KilledOut(serializers.Serializer[Any]):
    """How many executions were open."""

    executions = serializers.IntegerField()


class NoBody(StrictSerializer):
    """Nothing: a key that is sent all the same is a mistake."""


class RunBody(ReasonBody):
    """Where to run a job now, until when, and why."""

    target = serializers.JSONField()
    deadline = StrictText(required=False, allow_null=True, default=None, max_length=64)
    override_freeze = StrictFlag(required=False, default=False)
    params = serializers.DictField(
        child=StrictText(allow_blank=True, max_length=4_096), required=False, default=dict
    )


class ApproveBody(ReasonBody):
    """Which revision is approved: the one that was read."""

    revision = StrictNumber(required=False, min_value=1, max_value=2**31 - 1)
