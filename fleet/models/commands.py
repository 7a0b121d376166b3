"""One agent's share of an execution."""

from collections.abc import Iterable
from typing import Self

from django.db import models
from django.db.models import Index, Q, QuerySet, UniqueConstraint

from fleet.models.agents import Agent
from fleet.models.executions import Execution
from fleet.models.ids import new_id
from fleet.models.jobs import Job, JobRevision
from fleet.rules.command_states import OPEN, CommandState

# In the order of the enum: a set's own order differs from one process to the next.
OPEN_STATES = [state.value for state in CommandState if state in OPEN]


class CommandQuerySet(QuerySet["Command"]):
    """Questions about commands, and their one way to change state."""

    def open(self) -> Self:
        """Commands that have not ended."""
        return self.filter(state__in=OPEN_STATES)

    def move(self, sources: Iterable[CommandState], new: CommandState, **fields: object) -> int:
        """Move the rows that are still in one of `sources`; return how many moved."""
        return self.filter(state__in=[source.value for source in sources]).update(
            state=new.value, **fields
        )


class Command(models.Model):
    """What one agent is asked to do, from its planning to its end."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    # None for a fire that an agent made by itself (`runs_on: agent`).
    # Foreign keys without an index of their own: the constraints and indexes below begin with
    # execution, agent and job, and each index is paid for with every command that is written.
    execution = models.ForeignKey(
        Execution, null=True, on_delete=models.CASCADE, related_name="commands", db_index=False
    )
    agent = models.ForeignKey(
        Agent, on_delete=models.CASCADE, related_name="commands", db_index=False
    )
    job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="commands", db_index=False)
    revision = models.ForeignKey(
        JobRevision, on_delete=models.PROTECT, related_name="commands", db_index=False
    )
    # A plain number: commands outlive their schedule.
    schedule_id = models.BigIntegerField(null=True)
    wave = models.PositiveIntegerField(default=0)
    state = models.CharField(
        max_length=20, choices=[(state.value, state.value) for state in CommandState]
    )
    reason = models.CharField(max_length=500, blank=True, default="")
    # Made by a reconcile schedule: at most one such command is open per job and agent.
    reconciles = models.BooleanField(default=False)
    # Takes one of the job's max_concurrent slots while handed out or started.
    max_concurrent = models.PositiveIntegerField(null=True)
    holds_slot = models.BooleanField(default=False)
    override_freeze = models.BooleanField(default=False)
    # The order of hand-outs to this agent; signed, so that an old command is never run again.
    seq = models.BigIntegerField(default=0)
    created_at = models.DateTimeField()
    # Not before: the jitter drawn for this agent, counted from the wave's time.
    start_after = models.DateTimeField(null=True)
    deadline_at = models.DateTimeField()
    handed_out_at = models.DateTimeField(null=True)
    handed_out_epoch = models.BigIntegerField(null=True)
    started_at = models.DateTimeField(null=True)
    attempt = models.PositiveIntegerField(default=0)
    # Nobody answered for it by then: it is reaped.
    reap_at = models.DateTimeField(null=True)
    kill_requested_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    local_id = models.CharField(max_length=100, null=True)  # noqa: DJ001  # null: no local fire

    objects = CommandQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            UniqueConstraint(
                fields=["execution", "agent"], name="one_command_per_execution_and_agent"
            ),
            UniqueConstraint(
                fields=["job", "agent"],
                condition=Q(reconciles=True, state__in=OPEN_STATES),
                name="one_open_reconcile_command_per_job_and_agent",
            ),
            UniqueConstraint(
                fields=["agent", "local_id"],
                condition=Q(local_id__isnull=False),
                name="one_command_per_local_fire",
            ),
        ]
        indexes = [
            Index(
                fields=["agent", "state"],
                name="open_commands_by_agent",
                condition=Q(state__in=OPEN_STATES),
            ),
            Index(fields=["job"], name="open_commands_by_job", condition=Q(state__in=OPEN_STATES)),
            Index(
                fields=["deadline_at"],
                name="commands_not_handed_out",
                condition=Q(state__in=["staged", "queued"]),
            ),
            Index(
                fields=["reap_at"],
                name="commands_to_reap",
                condition=Q(state__in=["handed_out", "started"]),
            ),
            Index(fields=["agent", "-id"], name="commands_by_agent"),
        ]

    def __str__(self) -> str:
        return str(self.id)
