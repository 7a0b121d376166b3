"""What is killed: the freeze, and what is done to PCs and their credentials."""

from typing import Any

from django.utils import timezone

from fleet.flow.signing import server_signer
from fleet.models import (
    Agent,
    AgentState,
    Command,
    EnrolmentToken,
    Execution,
    Freeze,
    Result,
    ServerIdentity,
)
from fleet.operations.agents import revoke_agent, rotate_credential
from fleet.operations.credentials import LONG_AGO
from fleet.operations.enrolment_tokens import make_enrolment_token
from fleet.operations.freezing import clear_freeze, set_freeze
from scheduler.models import AuditEntry, Task
from tests.faults.fleet_acts import Act, all_or_nothing, remove
from tests.faults.fleet_points import Point
from tests.faults.fleet_world import ALICE, ids_in, run_tasks
from tests.fleet.agent_api.asking import ENROL, EXCHANGE, Pc, post
from tests.fleet.make import make_agent, make_command, make_execution


def audited(action: str, **fields: Any) -> int:
    """How many entries of the audit there are."""
    return AuditEntry.objects.filter(action=action, **fields).count()


class SetFreeze(Act):
    """A person freezes the fleet."""

    def prepare(self) -> None:
        self.reason = self.world.name("freeze")
        Task.objects.filter(kind="fleet.tick").delete()

    def do(self) -> None:
        set_freeze({"reason": self.reason}, actor=ALICE, now=timezone.now())

    def left(self) -> int:
        return all_or_nothing(
            (Freeze.objects.filter(is_set=True, reason=self.reason).count(), 1),
            (audited("freeze", reason=self.reason), 1),
            (Task.objects.filter(kind="fleet.tick").count(), 1),
        )

    def recover(self) -> None:
        self.do()
        pc = self.world.pcs[0]
        execution = make_execution(self.world.job, reason=self.reason)
        command = make_command(pc.agent, execution=execution, deadline_at=_next_year())
        assert pc.exchanges()["commands"] == []
        clear_freeze(actor=ALICE, now=timezone.now())
        assert ids_in(pc.exchanges()) == [str(command.pk)]

    def check(self, point: Point) -> None:  # frozen and thawed in any case
        assert Freeze.objects.filter(is_set=False).count() == Freeze.objects.count() == 1
        assert audited("freeze", reason=self.reason) == 1

    def clean(self) -> None:
        remove(Execution.objects.filter(reason=self.reason))
        run_tasks()


class Enrol(Act):
    """A PC enrols with a token for one."""

    def prepare(self) -> None:
        self.name = self.world.name("new")
        self.row, self.token = make_enrolment_token(actor=ALICE, now=timezone.now())

    def do(self) -> None:
        self.ask()

    def ask(self) -> Any:
        body = {
            "protocol": 1,
            "token": self.token,
            "name": self.name,
            "nonce": "n" * 43,
            "fingerprint": "f" * 64,
            "facts": {},
        }
        return post(ENROL, body)

    def left(self) -> int:
        agents = Agent.objects.filter(name=self.name)
        return all_or_nothing(
            (EnrolmentToken.objects.get(pk=self.row.pk).used, 1),
            (agents.count(), 1),
            (agents.exclude(presence=None).count(), 1),
            (audited("enrol", after__name=self.name), 1),
        )

    def recover(self) -> None:
        answer = self.ask()
        assert answer.status_code == 201
        told = answer.json()
        agent = Agent.objects.get(uuid_text=told["agent_id"])
        assert Pc(agent, told["credential"], epoch=None).exchanges()["epoch"] == 1

    def check(self, point: Point) -> None:
        assert self.left() == 1
        assert audited("enrol again", after__name=self.name) == point.keeps

    def clean(self) -> None:
        Agent.objects.filter(name=self.name).delete()


class Rotate(Act):
    """A person asks for a new credential of a PC."""

    def prepare(self) -> None:
        self.pc = self.world.pcs[0]
        self.before = self._audited()

    def _audited(self) -> int:
        return audited("rotate", object_id=self.pc.agent.uuid_text)

    def do(self) -> None:
        rotate_credential(self.pc.agent, actor=ALICE, now=timezone.now())

    def left(self) -> int:
        due = Agent.objects.filter(pk=self.pc.agent.pk, credential_at=LONG_AGO)
        return all_or_nothing((due.count(), 1), (self._audited() - self.before, 1))

    def recover(self) -> None:
        self.do()
        new = self.pc.exchanges()["credential"]
        Pc(self.pc.agent, new, seq=self.pc.seq).exchanges()

    def check(self, point: Point) -> None:
        assert self._audited() == self.before + 1 + point.keeps
        answer = post(EXCHANGE, self.pc.says(), credential=self.pc.credential)
        assert answer.status_code == 401

    def clean(self) -> None:
        self.world.refresh_credential(self.pc)


class Offer(Act):
    """A PC is offered a new credential; the reply with it never comes."""

    def prepare(self) -> None:
        self.pc = self.world.pcs[0]
        rotate_credential(self.pc.agent, actor=ALICE, now=timezone.now())

    def do(self) -> None:
        self.pc.exchanges()

    def left(self) -> int:
        offered = Agent.objects.filter(pk=self.pc.agent.pk).exclude(next_credential_hash="")
        return all_or_nothing(
            (offered.count(), 1), (offered.exclude(next_credential_at=None).count(), 1)
        )

    def recover(self) -> None:
        # The old one is good until a new one is used; the lost one is replaced after an hour.
        assert "credential" not in self.pc.exchanges()
        Agent.objects.filter(pk=self.pc.agent.pk).update(next_credential_at=LONG_AGO)
        new = self.pc.exchanges()["credential"]
        Pc(self.pc.agent, new, seq=self.pc.seq).exchanges()

    def check(self, point: Point) -> None:
        assert Agent.objects.get(pk=self.pc.agent.pk).next_credential_hash == ""

    def clean(self) -> None:
        self.world.refresh_credential(self.pc)


class Revoke(Act):
    """A person shuts out a PC that has a command and was to get another."""

    def prepare(self) -> None:
        self.reason = self.world.name("revoke")
        agent = make_agent(self.reason)
        executions = [make_execution(self.world.job, reason=self.reason) for _ in range(2)]
        held = make_command(agent, execution=executions[0], deadline_at=_next_year())
        self.pc = Pc(agent)
        assert ids_in(self.pc.exchanges()) == [str(held.pk)]
        make_command(agent, execution=executions[1], deadline_at=_next_year())

    def do(self) -> None:
        revoke_agent(self.pc.agent, actor=ALICE, now=timezone.now(), reason=self.reason)

    def left(self) -> int:
        commands = Command.objects.filter(agent=self.pc.agent)
        return all_or_nothing(
            (Agent.objects.filter(pk=self.pc.agent.pk, state=AgentState.REVOKED).count(), 1),
            (commands.filter(state="cancelled").count(), 1),
            (commands.filter(state="outcome_unknown").count(), 1),
            (Result.objects.filter(agent_id=self.pc.agent.pk).count(), 1),
            (audited("revoke", reason=self.reason), 1),
        )

    def recover(self) -> None:
        self.do()
        assert self.pc.sends().status_code == 401

    def check(self, point: Point) -> None:  # it is out in any case
        assert self.left() == 1

    def clean(self) -> None:
        remove(Execution.objects.filter(reason=self.reason))
        Agent.objects.filter(pk=self.pc.agent.pk).delete()


class MakeKey(Act):
    """The server makes its key when it is first needed."""

    def prepare(self) -> None:
        ServerIdentity.objects.all().delete()

    def do(self) -> None:
        server_signer()

    def left(self) -> int:
        return ServerIdentity.objects.count()

    def recover(self) -> None:
        assert server_signer() == server_signer()

    def check(self, point: Point) -> None:  # there is one in any case
        assert self.left() == 1


def _next_year() -> Any:
    now = timezone.now()
    return now.replace(year=now.year + 1)
