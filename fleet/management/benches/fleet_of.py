"""Many agents at once, for benchmarks: rows, credentials, tickets, and work for them."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from fleet.flow.wakes import wake
from fleet.models import (
    Agent,
    AgentPresence,
    Command,
    Execution,
    Job,
    JobRevision,
    Origin,
    new_id,
)
from fleet.operations.tokens import Purpose, Token, kept_hash, new_token, ticket_key
from fleet.rules.command_states import CommandState
from fleet.rules.execution_states import ExecutionState
from fleet.rules.manifest import execute_fingerprint, fingerprint, parse_job, to_document
from fleet.rules.tickets import Ticket, write_ticket

FINGERPRINT = "f" * 64
DAY = timedelta(days=1)


@dataclass(slots=True)
class Pc:
    """One agent as its PC knows itself."""

    pk: int
    token: Token = field(repr=False)
    seq: int = 0

    def message(self, **parts: object) -> dict[str, object]:
        """Return the next exchange."""
        self.seq += 1
        frame: dict[str, object] = {"protocol": 1, "epoch": 1, "seq": self.seq, "boot_id": "bench"}
        return frame | {"fingerprint": FINGERPRINT} | parts

    def ticket(self, now: datetime) -> str:
        """Return a ticket to wait with."""
        return write_ticket(Ticket(self.pk, now), key=ticket_key())


def make_pcs(count: int, *, first: int = 0) -> list[Pc]:
    """Write so many active agents, numbered from `first` on."""
    now = timezone.now()
    tokens = [new_token(Purpose.AGENT, str(new_id())) for _ in range(count)]
    agents = Agent.objects.bulk_create(
        [_agent(token, number, now) for number, token in enumerate(tokens, first)], batch_size=500
    )
    AgentPresence.objects.bulk_create(
        [AgentPresence(agent=agent, last_seen_at=now) for agent in agents], batch_size=500
    )
    return [Pc(agent.pk, token) for agent, token in zip(agents, tokens, strict=True)]


def _agent(token: Token, number: int, now: datetime) -> Agent:
    name = f"bench-{number}"
    return Agent(
        uuid=token.public_id,
        uuid_text=token.public_id,
        name=name,
        name_fold=name,
        reported_name=name,
        enrolled_at=now,
        credential_hash=kept_hash(token),
        credential_at=now,
        fingerprint=FINGERPRINT,
        epoch=1,
    )


def make_job() -> JobRevision:
    """Write a small job; return its current revision."""
    now = timezone.now()
    manifest = parse_job(
        {
            "id": "bench",
            "version": "1",
            "execute": {"shell": "sh", "script": "true", "timeout": "30s"},
        }
    )
    document = to_document(manifest)
    job = Job.objects.create(slug="bench", created_at=now, updated_at=now)
    revision = JobRevision.objects.create(
        job=job,
        number=1,
        version="1",
        manifest=document,
        sha256=fingerprint(document),
        execute_sha256=execute_fingerprint(manifest),
        created_at=now,
        created_by="bench",
    )
    job.current = job.latest = revision
    job.save()
    return revision


def give_work(revision: JobRevision, pcs: list[Pc]) -> None:
    """Queue a command for each PC and call them, as a dispatch does."""
    now = timezone.now()
    with transaction.atomic():
        execution = Execution.objects.create(
            job_id=revision.job_id,
            revision=revision,
            origin=Origin.MANUAL,
            state=ExecutionState.LIVE.value,
            actor="bench",
            planned=len(pcs),
            created_at=now,
            deadline_at=now + DAY,
        )
        Command.objects.bulk_create(
            [
                Command(
                    execution=execution,
                    agent_id=pc.pk,
                    job_id=revision.job_id,
                    revision=revision,
                    state=CommandState.QUEUED.value,
                    created_at=now,
                    deadline_at=now + DAY,
                )
                for pc in pcs
            ],
            batch_size=500,
        )
        wake(pc.pk for pc in pcs)
