"""Requests and replies that are lost, repeated and reordered: every command has one result."""

import json
import os
import random
from base64 import b64decode
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from fleet.agent_api import limits
from fleet.agent_api.limits import Allowance
from fleet.models import Command, Result
from fleet.rules.command_states import CommandState
from tests.fleet.agent_api.asking import EXCHANGE, Pc, post
from tests.fleet.flow.reporting import result_item
from tests.fleet.make import make_command, make_execution, make_job

pytestmark = pytest.mark.django_db
S = CommandState
PROVE = os.environ.get("KANADE_PROVE") == "1"
# Ten thousand exchanges in all where there is time for them.
SEEDS, EXCHANGES = (20, 500) if PROVE else (2, 60)
KINDS = ["fine", "fine", "reply lost", "request lost", "twice", "an old one"]


class Network:
    """Between a PC and the server; each message meets a fate by chance."""

    def __init__(self, pc: Pc, chance: random.Random) -> None:
        self._pc, self._chance = pc, chance
        self._sent: list[dict[str, Any]] = []

    def send(self, body: dict[str, Any]) -> dict[str, Any] | None:
        """Return the reply that arrives, if any does."""
        kind = self._chance.choice(KINDS)
        self._sent.append(body)
        if kind == "request lost":
            return None
        if kind == "an old one":
            # It overtakes the message; nobody reads its reply.
            self._post(self._chance.choice(self._sent[-5:]))
        told = self._post(body)
        if kind == "twice":
            assert self._post(body)["epoch"] == told["epoch"]
        return None if kind == "reply lost" else told

    def _post(self, body: dict[str, Any]) -> dict[str, Any]:
        response = post(EXCHANGE, body, credential=self._pc.credential)
        assert response.status_code == 200, response.content
        told: dict[str, Any] = response.json()
        return told


class Model:
    """An agent as its journal and outbox make it: what came once is never taken twice."""

    def __init__(self, pc: Pc, network: Network, chance: random.Random) -> None:
        self._pc, self._network, self._chance = pc, network, chance
        self._held: set[str] = set()
        self._journal: set[str] = set()
        self._untold: set[str] = set()
        self._outbox: dict[str, dict[str, Any]] = {}

    def exchange(self) -> None:
        self._work()
        now = timezone.now().isoformat()
        starts = [{"command": key, "attempt": 1, "started_at": now} for key in self._untold]
        results = list(self._outbox.values())
        holding = sorted(self._held)
        told = self._network.send(self._pc.says(holding=holding, started=starts, results=results))
        if told is None:
            return
        self._pc.epoch = told["epoch"]
        self._untold.clear()
        for key, verdict in told["verdicts"].items():
            assert verdict in {"stored", "duplicate"}, verdict
            self._outbox.pop(key, None)
        for envelope in told["commands"]:
            key = json.loads(b64decode(envelope["payload"]))["cmd_id"]
            if key not in self._journal:
                self._journal.add(key)
                self._held.add(key)

    def is_idle(self) -> bool:
        return not self._held and not self._outbox and not self._untold

    def _work(self) -> None:
        for key in sorted(self._held):
            if self._chance.random() < 0.5:
                self._held.discard(key)
                self._untold.add(key)
                self._outbox[key] = result_item(Command(id=key))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_on_a_bad_network_every_command_has_one_result_and_no_conflict(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "AGENTS", Allowance(10**9))
    chance, pc, job = random.Random(seed), Pc(), make_job()
    agent = Model(pc, Network(pc, chance), chance)
    deadline = timezone.now() + timedelta(days=1)
    given = 0
    for _ in range(EXCHANGES):
        if chance.random() < 0.3:
            execution = make_execution(job, deadline_at=deadline)
            make_command(pc.agent, execution=execution, state=S.QUEUED, deadline_at=deadline)
            given += 1
        agent.exchange()
    for _ in range(200):
        open_left = Command.objects.filter(state__in=["queued", "handed_out", "started"])
        if agent.is_idle() and not open_left.exists():
            break
        agent.exchange()

    states = list(Command.objects.values_list("state", flat=True))
    assert states == ["succeeded"] * given
    assert given > EXCHANGES // 10
    assert list(Result.objects.values_list("attempt", "conflicts")) == [(1, 0)] * given
