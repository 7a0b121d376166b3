"""A network that loses, repeats, delays and garbles: each command runs once and is known once."""

import os
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fleet.agent.commands import Command
from fleet.agent.pace import Pace
from tests.fleet.agent.make import command_id, make_command, make_script
from tests.fleet.agent.server import FakeServer, Response, as_json
from tests.fleet.agent.test_loop import Running, agent_of
from tests.fleet.agent.until import until

pytestmark = pytest.mark.concurrency

SEEDS = 40 if os.environ.get("KANADE_PROVE") == "1" else 3
NUMBERS = range(1, 21)
KINDS = ["fine", "fine", "reply lost", "request lost", "twice", "old", "garbage", "503"]


class NoPatience(Pace):
    """The delays of an agent that asks again at once."""

    def after_failure(self, retry_after_s: float | None = None) -> float:
        return 0.01

    def after_refusal(self) -> float:
        return 0.01


@pytest.fixture
def server() -> Iterator[FakeServer]:
    made = FakeServer()
    made.now = lambda: datetime.now(UTC)
    yield made
    made.close()


class BadNetwork:
    """Most exchanges go wrong in one way or another; each brings one more command."""

    def __init__(self, server: FakeServer, seed: int, commands: list[Command]) -> None:
        self._server, self._chance = server, random.Random(seed)
        self.to_come = commands
        self._earlier: dict[str, Any] | None = None
        self.harm: set[str] = set()

    def __call__(self, body: dict[str, Any]) -> Response | None:
        if self.to_come:
            self._server.give(self.to_come.pop())
        kind = self._chance.choice(KINDS)
        self.harm.add(kind)
        earlier, self._earlier = self._earlier, body
        match kind:
            case "reply lost":
                self._server.answer(body)
                return Response(0, lost=True)
            case "request lost":
                return Response(0, lost=True)
            case "twice":
                self._server.answer(body)
            case "old" if earlier is not None and earlier["epoch"] is not None:
                # A message from before comes again; nobody reads what it is answered.
                self._server.answer(earlier)
            case "garbage":
                self._server.answer(body)
                return Response(200, b'{"server_time": ')
            case "503":
                return as_json(503, {})
        return None


@pytest.mark.parametrize("seed", range(SEEDS))
def test_on_a_bad_network_each_command_runs_once_and_has_one_result(
    tmp_path: Path, server: FakeServer, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr("fleet.agent.loop.Pace", NoPatience)
    now = datetime.now(UTC)
    script = make_script(f'echo "$KANADE_COMMAND" >> {tmp_path}/ran\n')
    times = {"issued_at": now, "deadline_at": now + timedelta(hours=1)}
    commands = [make_command(number, script=script, **times) for number in NUMBERS]
    network = BadNetwork(server, seed, commands)
    server.faults.append(network)
    running = Running(agent_of(server, tmp_path))
    until(lambda: not server.pending and not network.to_come, within_s=60, what="all results")
    running.stop()
    ran = sorted((tmp_path / "ran").read_text().split())
    expected = [command_id(number) for number in NUMBERS]
    assert ran == expected
    assert {name: result["outcome"] for name, result in server.results.items()} == dict.fromkeys(
        expected, "succeeded"
    )
    assert len(network.harm) >= 4
