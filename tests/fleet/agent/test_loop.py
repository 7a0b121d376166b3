"""The running agent: it is woken, it stops at once, and it never runs a command twice."""

import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fleet.agent import identity, loop
from fleet.agent.address import read_address
from fleet.agent.commands import Command
from fleet.agent.identity import read_identity
from fleet.agent.journal import Journal
from fleet.agent.loop import Agent, Connections
from fleet.agent.pace import SHORTEST_S
from fleet.agent.transport import Transport
from tests.fleet.agent.locally import job_document, parts, schedule_document
from tests.fleet.agent.make import command_id, make_command, make_script
from tests.fleet.agent.server import FakeServer, Response, as_json
from tests.fleet.agent.until import until

pytestmark = pytest.mark.concurrency
ROOT = Path(__file__).resolve().parent.parent.parent.parent


@pytest.fixture
def server() -> Iterator[FakeServer]:
    made = FakeServer()
    made.now = lambda: datetime.now(UTC)
    yield made
    made.close()


def agent_of(server: FakeServer, folder: Path, *, slots: int = 2) -> Agent:
    if identity.load(folder) is None:
        found = read_identity(server.enrolled(), server=server.url, name="pc-1")
        identity.save(folder, found)
        Journal(folder / "journal", expected=False).close()
    known = identity.load(folder)
    assert known is not None
    address = read_address(server.url)
    ways = Connections(Transport(address), Transport(address))
    return Agent(folder, known, ways, slots=slots)


class Running:
    """An agent in a thread."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.thread = threading.Thread(target=agent.run_forever)
        self.thread.start()

    def stop(self, *, times: int = 1) -> None:
        for _ in range(times):
            self.agent.stop()
        self.thread.join(30)
        assert not self.thread.is_alive()


@pytest.fixture
def running(server: FakeServer, tmp_path: Path) -> Iterator[Running]:
    made = Running(agent_of(server, tmp_path))
    yield made
    made.stop(times=2)


def fresh(number: int = 1, text: str = "true\n", **fields: Any) -> Command:
    now = datetime.now(UTC)
    return make_command(
        number,
        script=make_script(text),
        issued_at=now,
        deadline_at=now + timedelta(hours=1),
        **fields,
    )


def answered(server: FakeServer, number: int = 1) -> dict[str, Any]:
    return until(lambda: server.results.get(command_id(number)), what="the result") or {}


def test_a_command_comes_runs_and_is_reported(
    server: FakeServer, running: Running, tmp_path: Path
) -> None:
    server.give(fresh(text=f"echo ran >> {tmp_path}/ran\n"))
    assert answered(server)["outcome"] == "succeeded"
    assert (tmp_path / "ran").read_text() == "ran\n"


def test_a_call_brings_the_next_exchange_at_once(server: FakeServer, running: Running) -> None:
    server.next_in_s = 3600.0
    until(lambda: server.waits > 0, what="the wait")
    server.give(fresh())
    server.wake.set()
    assert answered(server)["outcome"] == "succeeded"


def test_without_the_waiting_path_the_agent_comes_by_itself(
    server: FakeServer, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "wait", lambda: as_json(404, {}))
    server.give(fresh())
    assert answered(server)["outcome"] == "succeeded"


def test_a_result_does_not_wait_for_the_next_exchange(server: FakeServer, running: Running) -> None:
    until(lambda: server.exchanges, what="the first exchange")
    server.give(fresh(text="sleep 0.3\n"))
    server.next_in_s = 3600.0
    assert answered(server)["outcome"] == "succeeded"


def test_live_output_reaches_the_server_while_the_script_runs(
    server: FakeServer, running: Running, tmp_path: Path
) -> None:
    text = f"sleep 0.5; echo early; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done\n"
    server.give(fresh(text=text))
    until(lambda: server.started, what="the start")
    server.next_in_s = 3600.0
    until(lambda: server.output, what="live output")
    assert server.results == {}
    (tmp_path / "go").touch()
    answered(server)


def test_what_a_script_writes_is_on_its_page_within_two_seconds() -> None:
    page = (ROOT / "templates/kanade/run.html").read_text()
    (every,) = re.findall(r'data-every="([0-9.]+)"', page)
    room_for_the_requests_s = 0.25

    waits = [loop._LIVE_EVERY_S, SHORTEST_S, float(every), room_for_the_requests_s]

    assert sum(waits) <= 2.0


def test_stopping_an_idle_agent_is_immediate(server: FakeServer, tmp_path: Path) -> None:
    server.next_in_s = 3600.0
    running = Running(agent_of(server, tmp_path))
    until(lambda: server.waits, what="the wait")
    running.stop()


def test_stopping_lets_a_short_script_end_and_keeps_its_result(
    server: FakeServer, tmp_path: Path
) -> None:
    running = Running(agent_of(server, tmp_path))
    server.give(fresh(text=f"touch {tmp_path}/began; sleep 0.5; echo done\n"))
    until((tmp_path / "began").exists, what="the start")
    running.stop()
    again = agent_of(server, tmp_path)
    assert again.run_once().ok
    assert server.results[command_id()]["outcome"] == "succeeded"


def test_a_second_stop_ends_scripts_and_their_outcome_is_unknown(
    server: FakeServer, tmp_path: Path
) -> None:
    running = Running(agent_of(server, tmp_path))
    server.give(fresh(text=f"touch {tmp_path}/began; sleep 600\n"))
    until((tmp_path / "began").exists, what="the start")
    running.stop(times=2)
    assert agent_of(server, tmp_path).run_once().ok
    result = server.results[command_id()]
    assert (result["outcome"], result["exit_code"]) == ("outcome_unknown", -1)
    assert "agent was stopped" in result["reason"]


def test_a_stopping_agent_starts_nothing_of_what_it_holds(
    server: FakeServer, tmp_path: Path
) -> None:
    running = Running(agent_of(server, tmp_path, slots=1))
    text = f"touch {tmp_path}/began; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done\n"
    server.give(fresh(1, text))
    until((tmp_path / "began").exists, what="the start")
    server.give(fresh(2, f"touch {tmp_path}/second\n"))
    until(lambda: command_id(2) in server.exchanges[-1]["holding"], what="the second held")
    running.agent.stop()
    (tmp_path / "go").touch()
    running.thread.join(20)
    assert not (tmp_path / "second").exists()
    assert agent_of(server, tmp_path).run_once().ok
    assert server.results[command_id(2)]["outcome"] == "succeeded"


def test_once_runs_what_came_and_reports_it(server: FakeServer, tmp_path: Path) -> None:
    server.give(fresh(1, "exit 3\n"), fresh(2))
    talk = agent_of(server, tmp_path).run_once()
    assert talk.ok
    outcomes = [server.results[command_id(n)]["outcome"] for n in (1, 2)]
    assert outcomes == ["failed", "succeeded"]


def test_once_waits_for_jitter_but_not_for_a_thaw(server: FakeServer, tmp_path: Path) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=1)
    server.give(fresh(1, start_after=soon))
    assert agent_of(server, tmp_path).run_once().ok
    assert server.results[command_id(1)]["outcome"] == "succeeded"
    server.freeze |= {"frozen": True}
    server.give(fresh(2))
    assert agent_of(server, tmp_path).run_once().ok
    assert command_id(2) not in server.results


def test_once_with_nothing_to_do_is_one_exchange(server: FakeServer, tmp_path: Path) -> None:
    assert agent_of(server, tmp_path).run_once().ok
    assert len(server.exchanges) == 1


def test_once_against_a_server_that_refuses_says_so(server: FakeServer, tmp_path: Path) -> None:
    server.once(as_json(409, {"title": "Conflict"}))
    talk = agent_of(server, tmp_path).run_once()
    assert (talk.ok, talk.is_refusal) == (False, True)


def test_without_its_journal_an_agent_starts_nothing_that_was_issued_before(
    server: FakeServer, tmp_path: Path
) -> None:
    agent = agent_of(server, tmp_path)
    agent.close()
    (tmp_path / "journal").unlink()
    server.give(fresh(1, f"touch {tmp_path}/ran\n"))
    assert agent_of(server, tmp_path).run_once().ok
    assert server.results[command_id(1)]["outcome"] == "outcome_unknown"
    assert not (tmp_path / "ran").exists()
    server.give(fresh(2))
    assert agent_of(server, tmp_path).run_once().ok
    assert server.results[command_id(2)]["outcome"] == "succeeded"


def test_a_local_schedule_fires_where_the_server_is_gone(
    server: FakeServer, tmp_path: Path
) -> None:
    pair = (schedule_document(when={"per_pc": "once"}), job_document(f"touch {tmp_path}/ran\n"))
    server.extra = {"schedules": parts(pair, issued_at=datetime.now(UTC))}
    agent = agent_of(server, tmp_path)
    assert agent.run_once().ok
    assert not (tmp_path / "ran").exists()
    server.faults.append(lambda _: Response(503))
    running = Running(agent_of(server, tmp_path))
    until((tmp_path / "ran").exists, what="the fire without a server")
    running.stop()
    server.faults.clear()
    assert agent_of(server, tmp_path).run_once().ok
    (result,) = server.results.values()
    assert (result["outcome"], result["local"]["job"]) == ("succeeded", "inventory")


def test_of_two_clones_only_the_later_start_goes_on(server: FakeServer, tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir(mode=0o700)
    second.mkdir(mode=0o700)
    latest: dict[str, int] = {}

    def guard(body: dict[str, Any]) -> Response | None:
        if body["epoch"] is None:
            latest["epoch"] = server.epoch + 1
        return as_json(409, {}) if body["epoch"] not in {None, latest["epoch"]} else None

    server.faults.append(guard)
    older = Running(agent_of(server, first))
    until(lambda: server.epoch == 1, what="the first start")
    newer = Running(agent_of(server, second))
    until(lambda: server.epoch == 2, what="the second start")
    until(lambda: any(body["epoch"] == 1 for body in server.exchanges), what="the refusal")
    server.give(fresh(text=f"pwd >> {tmp_path}/ran\n"))
    assert answered(server)["outcome"] == "succeeded"
    older.stop()
    newer.stop()
    assert len((tmp_path / "ran").read_text().splitlines()) == 1
    assert [body["epoch"] for body in server.exchanges].count(None) == 2
