"""Managed machines: who they are, and when they were last heard."""

from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import Index, Q, QuerySet, UniqueConstraint

from fleet.models.ids import new_id
from fleet.rules.liveness import ALIVE_FOR


class AgentState(models.TextChoices):
    """May this machine take work?"""

    ACTIVE = "active", "active"
    # Enrolled by a group token: an operator accepts it first.
    PENDING = "pending", "waiting to be accepted"
    # Another machine presented the same identity; an operator decides.
    QUARANTINED = "quarantined", "quarantined"
    REVOKED = "revoked", "revoked"


class AgentQuerySet(QuerySet["Agent"]):
    """Questions about agents."""

    def alive(self, now: datetime) -> Self:
        """Active agents that were heard within the last two minutes."""
        return self.filter(state=AgentState.ACTIVE, presence__last_seen_at__gte=now - ALIVE_FOR)

    def named(self, name: str) -> Self:
        """The agent of that name, whatever its case, or of that uuid."""
        return self.filter(Q(name_fold=name.casefold()) | Q(uuid_text=name.lower()))


class Agent(models.Model):
    """One managed PC. Its public identity is `uuid`; the name is for people."""

    uuid = models.UUIDField(unique=True, default=new_id, editable=False)
    # The same as text, so that an operator's word for a PC is one lookup.
    uuid_text = models.CharField(max_length=36, unique=True, editable=False)
    name = models.CharField(max_length=255)
    name_fold = models.CharField(max_length=512, editable=False)
    # As the machine says it; differs from `name` where that was taken.
    reported_name = models.CharField(max_length=255, editable=False)
    state = models.CharField(
        max_length=20, choices=AgentState.choices, default=AgentState.ACTIVE, editable=False
    )
    state_reason = models.CharField(max_length=500, blank=True, default="", editable=False)
    facts = models.JSONField(default=dict, editable=False)
    zone = models.CharField(max_length=100, blank=True, default="UTC", editable=False)
    # Which bundle of `runs_on: agent` schedules it last said it has; blank = none.
    schedules_etag = models.CharField(max_length=64, blank=True, default="", editable=False)
    enrolled_at = models.DateTimeField(editable=False)
    revoked_at = models.DateTimeField(null=True, editable=False)
    # HMAC-SHA-256 of the credential's secret part under the pepper; never the secret.
    credential_hash = models.CharField(max_length=64, editable=False)
    # Offered and not yet used; becomes the only one at its first use.
    next_credential_hash = models.CharField(max_length=64, blank=True, default="", editable=False)
    next_credential_at = models.DateTimeField(null=True, editable=False)
    credential_at = models.DateTimeField(editable=False)
    enrolment_token_id = models.BigIntegerField(null=True, editable=False)
    enrolment_nonce_hash = models.CharField(max_length=64, blank=True, default="", editable=False)
    fingerprint = models.CharField(max_length=64, blank=True, default="", editable=False)
    # The machine that presented this identity although it is not `fingerprint`.
    rival_fingerprint = models.CharField(max_length=64, blank=True, default="", editable=False)
    rival_seen_at = models.DateTimeField(null=True, editable=False)
    epoch = models.BigIntegerField(default=0, editable=False)
    boot_id = models.CharField(max_length=100, blank=True, default="", editable=False)

    objects = AgentQuerySet.as_manager()

    class Meta:
        ordering = ["name_fold"]
        constraints = [
            UniqueConstraint(fields=["name_fold"], name="one_agent_per_name_whatever_its_case"),
        ]
        permissions = [("manage_enrolment", "Can enrol, accept and revoke PCs")]

    def __str__(self) -> str:
        return self.name


class AgentPresence(models.Model):
    """What changes at every exchange, in a narrow table of its own."""

    agent = models.OneToOneField(
        Agent, on_delete=models.CASCADE, primary_key=True, related_name="presence"
    )
    last_seen_at = models.DateTimeField(null=True)
    seq = models.BigIntegerField(default=0)
    # The number of the last command handed out: commands carry it, signed and ever growing.
    handouts = models.BigIntegerField(default=0)
    # How far the machine's clock is ahead of the server's, in milliseconds.
    skew_ms = models.BigIntegerField(default=0)

    class Meta:
        verbose_name_plural = "agent presence"

    def __str__(self) -> str:
        return f"{self.agent_id} seen {self.last_seen_at}"


class JobAgent(models.Model):
    """The durable facts: how this agent's last run of this job ended, and its last success.

    They outlive the results that they came from.
    """

    # The unique pair and the index below are theirs.
    job = models.ForeignKey(
        "fleet.Job", on_delete=models.CASCADE, related_name="job_agents", db_index=False
    )
    agent = models.ForeignKey(
        Agent, on_delete=models.CASCADE, related_name="job_agents", db_index=False
    )
    # None: it never succeeded.
    last_success_at = models.DateTimeField(null=True)
    last_success_version = models.CharField(max_length=100, blank=True, default="")
    # Of the last run that ended in whatever way; blank where none is known.
    last_state = models.CharField(max_length=20, blank=True, default="")
    last_version = models.CharField(max_length=100, blank=True, default="")
    last_ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            UniqueConstraint(fields=["job", "agent"], name="one_success_fact_per_job_and_agent"),
        ]
        indexes = [Index(fields=["agent"], name="job_agent_by_agent")]

    def __str__(self) -> str:
        return f"{self.agent_id} did {self.job_id}: {self.last_state} at {self.last_ended_at}"
