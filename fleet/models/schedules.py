"""When and where: schedules, their state per agent, and their nominal fire times."""

from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import Index, Q, QuerySet, UniqueConstraint
from django.db.models.functions import Lower

from fleet.models.agents import Agent
from fleet.models.ids import SlugQuerySet
from fleet.models.jobs import Job


class Shape(models.TextChoices):
    """The three kinds of `when`."""

    PER_PC = "per_pc", "each PC"
    PER_TARGET = "per_target", "one PC of the target"
    CALENDAR = "calendar", "calendar"


class ScheduleQuerySet(SlugQuerySet["Schedule"]):
    """Questions about schedules."""


class Schedule(models.Model):
    """One schedule. `manifest` is its content; the columns are what the tick asks about."""

    slug = models.CharField("id", max_length=100)
    job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="schedules")
    manifest = models.JSONField()
    fingerprint = models.CharField(max_length=64, editable=False)
    # sha256 of what decides the fire times: an edit that leaves it alone re-arms nothing.
    timing_fingerprint = models.CharField(max_length=64, editable=False)
    shape = models.CharField(max_length=20, choices=Shape.choices, editable=False)
    runs_on_agent = models.BooleanField(default=False, editable=False)
    enabled = models.BooleanField(default=True)
    # Calendars: the next nominal time, in UTC; none when it never fires again.
    next_fire_at = models.DateTimeField(null=True, editable=False)
    # Calendars: every nominal time up to here is settled (fired, skipped or missed).
    settled_until = models.DateTimeField(null=True, editable=False)
    # The per-target mark: when some PC of the target was last given the job.
    last_dispatched_at = models.DateTimeField(null=True, editable=False)
    # When the tick looks again even if no agent becomes due; none = nothing to wait for.
    look_at = models.DateTimeField(null=True, editable=False)
    # A gate of the schedule itself is closed: agents that are due wait for `look_at`.
    held = models.BooleanField(default=False, editable=False)
    # Set while the rows of (schedule, agent) do not yet follow from target and groups.
    targets_dirty_at = models.DateTimeField(null=True, editable=False)
    set_name = models.CharField(max_length=100, blank=True, default="", editable=False)
    created_at = models.DateTimeField(editable=False)
    updated_at = models.DateTimeField(editable=False)

    objects = ScheduleQuerySet.as_manager()

    class Meta:
        ordering = ["slug"]
        constraints = [
            UniqueConstraint(Lower("slug"), name="one_schedule_per_id_whatever_its_case"),
        ]
        indexes = [
            Index(
                fields=["next_fire_at"],
                name="calendars_by_next_fire",
                condition=Q(enabled=True, next_fire_at__isnull=False),
            ),
            Index(
                fields=["look_at"],
                name="schedules_to_look_at",
                condition=Q(look_at__isnull=False),
            ),
            Index(
                fields=["job"],
                name="schedules_that_agents_fire",
                condition=Q(enabled=True, runs_on_agent=True),
            ),
        ]
        permissions = [("fire_schedule", "Can fire, enable and disable a schedule")]

    def __str__(self) -> str:
        return self.slug


class ScheduleAgentQuerySet(QuerySet["ScheduleAgent"]):
    """Questions about the state of agents under schedules."""

    def due(self, now: datetime) -> Self:
        """Rows whose time has come."""
        return self.filter(due_at__lte=now)


class ScheduleAgent(models.Model):
    """One agent under one reconcile schedule: when it is due next."""

    # The unique pair is its index.
    schedule = models.ForeignKey(
        Schedule, on_delete=models.CASCADE, related_name="schedule_agents", db_index=False
    )
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="schedule_agents")
    # None: in flight, done for ever, or parked (then `parked_due_at` keeps the time).
    due_at = models.DateTimeField(null=True)
    # An offline PC's due time; its next exchange puts it back.
    parked_due_at = models.DateTimeField(null=True)
    last_dispatched_at = models.DateTimeField(null=True)
    failures = models.PositiveIntegerField(default=0)
    last_failed_at = models.DateTimeField(null=True)

    objects = ScheduleAgentQuerySet.as_manager()

    class Meta:
        constraints = [
            UniqueConstraint(fields=["schedule", "agent"], name="one_state_per_schedule_and_agent"),
        ]
        indexes = [
            Index(
                fields=["schedule", "due_at", "agent"],
                name="schedule_agents_by_due",
                condition=Q(due_at__isnull=False),
            ),
            Index(
                fields=["agent"],
                name="schedule_agents_parked",
                condition=Q(parked_due_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.agent_id} under {self.schedule_id}: due {self.due_at}"


class OccurrenceState(models.TextChoices):
    """What became of one nominal time."""

    FIRED = "fired", "fired"
    # A gate was closed at that moment; it is not caught up.
    SKIPPED = "skipped", "skipped"
    # The server did not look in time and the misfire policy did not catch it up.
    MISSED = "missed", "missed"


class Occurrence(models.Model):
    """One nominal fire time of a calendar schedule. It exists once, so it fires at most once."""

    schedule = models.ForeignKey(Schedule, on_delete=models.CASCADE, related_name="occurrences")
    nominal_at = models.DateTimeField()
    state = models.CharField(max_length=10, choices=OccurrenceState.choices)
    reason = models.CharField(max_length=200, blank=True, default="")
    # Nominal times before this one that were missed with it and have no row of their own.
    missed_before = models.PositiveIntegerField(default=0)
    late_s = models.PositiveIntegerField(default=0)
    execution_id = models.UUIDField(null=True)
    settled_at = models.DateTimeField()

    class Meta:
        ordering = ["-nominal_at"]
        constraints = [
            UniqueConstraint(
                fields=["schedule", "nominal_at"], name="one_occurrence_per_nominal_time"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.schedule_id} at {self.nominal_at}: {self.state}"


class Evaluation(models.Model):
    """What a schedule's ticks decided and why, from `since` on until something else was decided."""

    schedule = models.ForeignKey(Schedule, on_delete=models.CASCADE, related_name="evaluations")
    since = models.DateTimeField()
    # None while it is in force.
    until = models.DateTimeField(null=True)
    reason = models.CharField(max_length=40)
    detail = models.CharField(max_length=1000, blank=True, default="")
    opens_at = models.DateTimeField(null=True)
    counts = models.JSONField(default=dict)

    class Meta:
        ordering = ["-since"]
        constraints = [
            UniqueConstraint(
                fields=["schedule"],
                condition=Q(until__isnull=True),
                name="one_evaluation_in_force_per_schedule",
            ),
        ]
        indexes = [Index(fields=["schedule", "-since"], name="evaluations_by_schedule")]

    def __str__(self) -> str:
        return f"{self.schedule_id}: {self.reason} since {self.since}"


class TickMark(models.Model):
    """When the fleet was last ticked: a single row."""

    last_tick_at = models.DateTimeField(null=True)
    # Since when ticks have come regularly and some agent was heard at each: only then does an
    # agent's silence say something about the agent.
    steady_since = models.DateTimeField(null=True)
    # Whether that tick found the fleet frozen: the first one after a thaw looks at everything.
    was_frozen = models.BooleanField(default=False)
    # By which zone data and server zone the next times of calendars were computed.
    zone_data = models.CharField(max_length=120, blank=True, default="")

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(pk=1), name="one_tick_mark"),
        ]

    def __str__(self) -> str:
        return f"ticked at {self.last_tick_at}"
