"""How a command ended, and what it printed."""

from django.db import models
from django.db.models import CheckConstraint, Index, Q, UniqueConstraint

from fleet.rules.command_states import TERMINAL, CommandState

# In the order of the enum: a set's own order differs from one process to the next.
_OUTCOMES = [(state.value, state.value) for state in CommandState if state in TERMINAL]


class Result(models.Model):
    """The one result of a command. Plain columns, no foreign keys: history is pruned by itself."""

    command_id = models.UUIDField(primary_key=True)
    execution_id = models.UUIDField(null=True)
    agent_id = models.BigIntegerField()
    job_id = models.BigIntegerField()
    schedule_id = models.BigIntegerField(null=True)
    job_version = models.CharField(max_length=100)
    revision_id = models.BigIntegerField()
    attempt = models.PositiveIntegerField(default=1)
    retries = models.PositiveIntegerField(default=0)
    outcome = models.CharField(max_length=20, choices=_OUTCOMES)
    exit_code = models.BigIntegerField(null=True)
    reason = models.CharField(max_length=500, blank=True, default="")
    note = models.TextField(blank=True, default="")
    # As the PC's clock said, kept within bounds; `received_at` is the server's.
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    # Measured by the PC's monotonic clock.
    duration_ms = models.BigIntegerField(null=True)
    received_at = models.DateTimeField()
    # The command had been reaped or had expired when this came.
    late = models.BooleanField(default=False)
    # The server wrote it because the PC never answered.
    reaped = models.BooleanField(default=False)
    # sha256 of the report: the same again is a duplicate, another one a conflict.
    report_sha256 = models.CharField(max_length=64, blank=True, default="")
    conflicts = models.PositiveIntegerField(default=0)
    code_page = models.CharField(max_length=40, blank=True, default="")

    class Meta:
        ordering = ["-command_id"]
        constraints = [
            CheckConstraint(
                condition=Q(duration_ms__isnull=True) | Q(duration_ms__gte=0),
                name="a_duration_is_never_negative",
            ),
        ]
        indexes = [
            Index(fields=["job_id", "-command_id"], name="results_by_job"),
            Index(fields=["agent_id", "-command_id"], name="results_by_agent"),
            Index(fields=["execution_id"], name="results_by_execution"),
            Index(fields=["outcome", "-command_id"], name="results_by_outcome"),
            Index(fields=["received_at"], name="results_by_arrival"),
            Index(fields=["schedule_id", "received_at"], name="results_by_schedule"),
        ]

    def __str__(self) -> str:
        return f"{self.command_id}: {self.outcome}"


class Stream(models.TextChoices):
    """The two streams of a script."""

    STDOUT = "stdout", "output"
    STDERR = "stderr", "errors"


class OutputChunk(models.Model):
    """A piece of output that came while the script runs; replaced by the final output."""

    command_id = models.UUIDField()
    stream = models.CharField(max_length=6, choices=Stream.choices)
    offset = models.BigIntegerField()
    data = models.BinaryField()
    received_at = models.DateTimeField()

    class Meta:
        constraints = [
            UniqueConstraint(
                fields=["command_id", "stream", "offset"], name="one_chunk_per_offset"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.command_id} {self.stream} from {self.offset}"


class Output(models.Model):
    """The final output of a command: its head and tail as they came, bytes, never text."""

    command_id = models.UUIDField()
    stream = models.CharField(max_length=6, choices=Stream.choices)
    head = models.BinaryField()
    tail = models.BinaryField()
    # How many bytes the script wrote in all; more than head and tail where the middle was cut.
    total = models.BigIntegerField()
    sha256 = models.CharField(max_length=64, blank=True, default="")
    received_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [
            UniqueConstraint(fields=["command_id", "stream"], name="one_output_per_stream"),
        ]

    def __str__(self) -> str:
        return f"{self.command_id} {self.stream}: {self.total} bytes"
