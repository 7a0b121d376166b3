"""What the page of one run shows: a command's course, its result and its output, live or final."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from fleet.models import Agent, Command, Execution, Job, JobRevision, Output, OutputChunk, Result
from fleet.models import Stream as StreamName
from fleet.rules.command_states import OPEN, CommandState
from fleet.rules.console import SHOWN_BYTES, Shown, shown

# Pieces of live output that are joined for one look; the agent sends at most 32 KiB a piece.
MOST_CHUNKS = 16


@dataclass(frozen=True, slots=True)
class StreamView:
    """One stream as a page shows it."""

    name: str
    title: str
    shown: Shown


@dataclass(frozen=True, slots=True)
class Step:
    """One moment in the course of a command."""

    at: datetime
    word: str


@dataclass(frozen=True, slots=True)
class RunPage:
    """Everything about one run; the command or the result may be pruned already."""

    command_id: UUID
    command: Command | None
    result: Result | None
    agent: Agent | None
    job: Job | None
    revision: JobRevision | None
    execution: Execution | None
    state: str
    reason: str
    steps: Sequence[Step]
    streams: Sequence[StreamView]
    is_over: bool
    is_live_output: bool

    @property
    def has_output(self) -> bool:
        """Whether the script wrote anything."""
        return any(not stream.shown.is_empty for stream in self.streams)

    @property
    def has_download(self) -> bool:
        """Whether the final output is stored."""
        return self.has_output and not self.is_live_output


def run_page(command_id: UUID) -> RunPage:
    """Read the page of a command that exists, or whose result does."""
    command = _command(command_id)
    result = Result.objects.filter(pk=command_id).first()
    streams, live = _streams(command_id, result.code_page if result else "")
    state = command.state if command else result.outcome if result else ""
    return RunPage(
        command_id=command_id,
        command=command,
        result=result,
        agent=command.agent if command else _agent(result),
        job=command.job if command else _job(result),
        revision=command.revision if command else _revision(result),
        execution=command.execution if command else _execution(result),
        state=state,
        reason=(result.reason if result else "") or (command.reason if command else ""),
        steps=_steps(command, result),
        streams=streams,
        is_over=CommandState(state) not in OPEN if state else True,
        is_live_output=live,
    )


def _command(command_id: UUID) -> Command | None:
    related = ("agent", "agent__presence", "job", "revision", "execution")
    return Command.objects.filter(pk=command_id).select_related(*related).first()


def _agent(result: Result | None) -> Agent | None:
    return Agent.objects.filter(pk=result.agent_id).first() if result else None


def _job(result: Result | None) -> Job | None:
    return Job.everything.filter(pk=result.job_id).first() if result else None


def _revision(result: Result | None) -> JobRevision | None:
    return JobRevision.objects.filter(pk=result.revision_id).first() if result else None


def _execution(result: Result | None) -> Execution | None:
    if result is None or result.execution_id is None:
        return None
    return Execution.objects.filter(pk=result.execution_id).first()


def _steps(command: Command | None, result: Result | None) -> list[Step]:
    moments: list[tuple[datetime | None, str]] = []
    if command:
        moments = [
            (command.created_at, "planned"),
            (command.start_after, "may start (jitter)"),
            (command.handed_out_at, "handed out to the PC"),
            (command.started_at, f"started, attempt {max(command.attempt, 1)}"),
            (command.kill_requested_at, "asked to stop"),
            (command.ended_at, "ended"),
        ]
    if result:
        moments.append((result.received_at, "result received" if not result.reaped else "given up"))
    steps = [Step(at, word) for at, word in moments if at is not None]
    return sorted(steps, key=lambda step: step.at)


def _streams(command_id: UUID, code_page: str) -> tuple[list[StreamView], bool]:
    """The streams as stored in the end, else what has come so far; and which of the two."""
    final = {output.stream: output for output in Output.objects.filter(command_id=command_id)}
    if final:
        return [_final(final.get(name.value), name, code_page) for name in StreamName], False
    pieces = [_live(command_id, name) for name in StreamName]
    return pieces, any(not piece.shown.is_empty for piece in pieces)


def _final(output: Output | None, name: StreamName, code_page: str) -> StreamView:
    if output is None:
        return StreamView(name.value, name.label, shown(b"", b"", total=0))
    whole = shown(bytes(output.head), bytes(output.tail), total=output.total, code_page=code_page)
    return StreamView(name.value, name.label, whole)


def _live(command_id: UUID, name: StreamName) -> StreamView:
    """The end of what a running script has written so far."""
    chunks = list(
        OutputChunk.objects.filter(command_id=command_id, stream=name.value).order_by("-offset")[
            :MOST_CHUNKS
        ]
    )
    data = b"".join(bytes(chunk.data) for chunk in reversed(chunks))
    total = chunks[0].offset + len(chunks[0].data) if chunks else 0
    return StreamView(name.value, name.label, shown(b"", data[-SHOWN_BYTES:], total=total))
