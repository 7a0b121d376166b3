"""A fleet of PCs as the server sees it, in real time, and the runner that does its tasks."""

import itertools
import json
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.test import Client
from django.utils import timezone

from fleet.flow.signing import server_signer
from fleet.flow.sweep import sweep
from fleet.models import Agent, AgentPresence, AgentState, Group, Job, Membership, new_id
from fleet.operations.tokens import Purpose, kept_hash, new_token
from scheduler.engine import runners
from scheduler.engine.tick import tick as engine_tick
from scheduler.public import Actor
from tests.fleet.agent_api.asking import EXCHANGE, FINGERPRINT, Pc, give_credential
from tests.fleet.flow.reporting import result_item
from tests.fleet.make import make_job

ALICE = Actor("user", "alice")
AGENTS = 200
# Long enough for whatever waits for a sweep or a lease.
PATIENCE = timedelta(minutes=4)


CLIENT = Client()


class Machine(Pc):
    """A PC whose messages go through one client: its middleware is loaded before any fork."""

    def sends(self, **parts: object) -> Any:
        """Send the next message; return the response."""
        return CLIENT.post(
            EXCHANGE,
            json.dumps(self.says(**parts)).encode(),
            content_type="application/json",
            headers={"Authorization": f"Bearer {self.credential}"},
        )


@dataclass
class World:
    """The PCs (all heard just now), in two groups of the same size, and a job."""

    pcs: list[Machine]
    job: Job
    numbers: Iterator[int] = field(default_factory=itertools.count)

    @classmethod
    def make(cls, count: int = AGENTS) -> "World":
        """Write it."""
        now = timezone.now()
        tokens = []
        agents = []
        for number in range(count):
            uuid = new_id()
            tokens.append(new_token(Purpose.AGENT, str(uuid)))
            agents.append(_agent(uuid, f"pc-{number:04}", kept_hash(tokens[-1]), now))
        Agent.objects.bulk_create(agents)
        AgentPresence.objects.bulk_create(
            AgentPresence(agent=agent, last_seen_at=now) for agent in agents
        )
        for number, part in enumerate((agents[: count // 2], agents[count // 2 :])):
            group = Group.objects.create(slug=f"half-{number}", created_at=now, updated_at=now)
            Membership.objects.bulk_create(Membership(group=group, agent=one) for one in part)
        server_signer()
        pairs = zip(agents, tokens, strict=True)
        found = cls([Machine(agent, token.text) for agent, token in pairs], make_job("work"))
        # What is loaded at the first message is loaded once, and not in every child.
        found.pcs[0].exchanges()
        return found

    def name(self, stem: str) -> str:
        """A name that was not used before."""
        return f"{stem}-{next(self.numbers)}"

    def hear(self) -> None:
        """Tell PCs the number of their last message, which a child of this process sent."""
        known = dict(AgentPresence.objects.values_list("agent_id", "seq"))
        for pc in self.pcs:
            pc.seq = known[pc.agent.pk]

    def refresh_credential(self, pc: Pc) -> None:
        """Give a PC a credential that is not due for another one."""
        now = timezone.now()
        columns = {"next_credential_hash": "", "next_credential_at": None, "credential_at": now}
        Agent.objects.filter(pk=pc.agent.pk).update(**columns)
        pc.credential = give_credential(pc.agent)


def _agent(uuid: UUID, name: str, credential_hash: str, now: datetime) -> Agent:
    return Agent(
        uuid=uuid,
        uuid_text=str(uuid),
        name=name,
        name_fold=name,
        reported_name=name,
        state=AgentState.ACTIVE,
        enrolled_at=now,
        credential_hash=credential_hash,
        credential_at=now,
        fingerprint=FINGERPRINT,
        epoch=1,
        boot_id="boot-1",
    )


def run_tasks(*, later: timedelta = timedelta(0)) -> None:
    """Be a runner of this process until nothing is due, as if `later` had passed."""
    runner = runners.sign_on("kills", workers=1, queues=None)

    def clock() -> datetime:
        return timezone.now() + later

    while engine_tick(runner, clock).ran:
        continue
    runners.sign_off(runner.pk)


def recover() -> None:
    """Do what a clean process does by itself in time: sweep, free leases, run what is due."""
    sweep(now=timezone.now() + PATIENCE)
    run_tasks(later=PATIENCE)


def ids_in(told: dict[str, Any]) -> list[str]:
    """The commands of a reply, which are envelopes."""
    return [payload_of(envelope)["cmd_id"] for envelope in told["commands"]]


def payload_of(envelope: dict[str, Any]) -> dict[str, Any]:
    """What an envelope says."""
    payload: dict[str, Any] = json.loads(b64decode(envelope["payload"]))
    return payload


def result_of(command: str) -> dict[str, Any]:
    """The one result that a PC has for a command: the same whenever it is sent."""
    return result_item(UUID(command))


def killed(command: str) -> dict[str, Any]:
    """The result of a command that its PC was told to stop."""
    return result_item(UUID(command), outcome="killed", exit_code=None)


def finish(pc: Pc) -> list[str]:
    """Let a PC fetch what there is, do it and report it; return the commands that it did."""
    told = pc.exchanges()
    commands = ids_in(told)
    if commands:
        told = pc.exchanges(results=[result_of(command) for command in commands])
        assert set(told["verdicts"].values()) <= {"stored", "duplicate"}
    return commands
