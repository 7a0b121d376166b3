"""One dispatch of a job to a set of agents, and its waves."""

from django.db import models
from django.db.models import CheckConstraint, Index, Q, UniqueConstraint

from fleet.models.ids import new_id
from fleet.models.jobs import Job, JobRevision
from fleet.models.schedules import Schedule
from fleet.rules.execution_states import ExecutionState


class Origin(models.TextChoices):
    """Who asked for an execution."""

    SCHEDULE = "schedule", "its schedule"
    FIRE = "fire", "a person, by firing the schedule"
    MANUAL = "manual", "a person, by running the job"


class Execution(models.Model):
    """One dispatch. Its counters are never stored: they follow from its commands."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="executions")
    revision = models.ForeignKey(JobRevision, on_delete=models.PROTECT, related_name="executions")
    schedule = models.ForeignKey(
        Schedule, null=True, on_delete=models.SET_NULL, related_name="executions"
    )
    # Kept when the schedule is deleted.
    schedule_slug = models.CharField(max_length=100, blank=True, default="")
    origin = models.CharField(max_length=10, choices=Origin.choices)
    # Of a calendar schedule: the nominal time that this fire is for.
    nominal_at = models.DateTimeField(null=True)
    state = models.CharField(
        max_length=20, choices=[(state.value, state.value) for state in ExecutionState]
    )
    actor = models.CharField(max_length=200)
    actor_id = models.BigIntegerField(null=True)
    reason = models.TextField(blank=True, default="")
    override_freeze = models.BooleanField(default=False)
    # The target as it was asked for, and what every command of it carries:
    # {"jitter_s", "retry": {"max", "backoff_s"} | null, "max_concurrent", "max_failures",
    #  "deadline_s" | null, "deadline_at" | null}
    target = models.JSONField(default=dict)
    plan = models.JSONField(default=dict)
    # How many commands it has once all waves are planned.
    planned = models.PositiveIntegerField(default=0)
    # While planning: the agent up to which commands are written.
    cursor = models.BigIntegerField(default=0)
    created_at = models.DateTimeField()
    deadline_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    end_reason = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        ordering = ["-id"]
        indexes = [
            Index(
                fields=["state", "deadline_at"],
                name="executions_in_progress",
                condition=Q(state__in=["awaiting_approval", "planning", "live"]),
            ),
            Index(fields=["job", "-id"], name="executions_by_job"),
            Index(fields=["schedule", "-id"], name="executions_by_schedule"),
        ]
        constraints = [
            CheckConstraint(
                condition=Q(override_freeze=False) | ~Q(reason=""),
                name="an_override_of_the_freeze_has_a_reason",
            ),
        ]
        permissions = [("kill_execution", "Can stop what is running")]

    def __str__(self) -> str:
        return str(self.id)


class WaveState(models.TextChoices):
    """Where a wave stands."""

    WAITING = "waiting", "waiting for its time"
    RELEASED = "released", "released"
    # Earlier waves failed too often, or somebody stopped the rollout.
    STOPPED = "stopped", "stopped"


class Wave(models.Model):
    """A part of an execution that becomes visible to its agents at its own time."""

    execution = models.ForeignKey(Execution, on_delete=models.CASCADE, related_name="waves")
    number = models.PositiveIntegerField()
    group_slug = models.CharField(max_length=100, blank=True, default="")
    due_at = models.DateTimeField()
    deadline_at = models.DateTimeField()
    state = models.CharField(max_length=10, choices=WaveState.choices, default=WaveState.WAITING)
    reason = models.CharField(max_length=200, blank=True, default="")
    released_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["execution_id", "number"]
        constraints = [
            UniqueConstraint(fields=["execution", "number"], name="waves_are_numbered"),
        ]
        indexes = [
            Index(fields=["due_at"], name="waves_waiting", condition=Q(state="waiting")),
        ]

    def __str__(self) -> str:
        return f"wave {self.number} of {self.execution_id}"
