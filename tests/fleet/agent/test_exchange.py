"""One talk with the server: what is said, what is done with the answer, and each way it fails."""

import json
from base64 import b64decode
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from fleet.agent import identity, transport
from fleet.agent.address import read_address
from fleet.agent.commands import Outcome
from fleet.agent.exchange import Exchange, Talk
from fleet.agent.gate import Freeze, Gate
from fleet.agent.identity import IdentityFile, read_identity
from fleet.agent.last_word import LastWordFile
from fleet.agent.local_schedules import LocalSchedules
from fleet.agent.pace import Pace
from fleet.agent.transport import Transport
from tests.fleet.agent.bench import Bench
from tests.fleet.agent.locally import job_document, parts, schedule_document
from tests.fleet.agent.make import (
    AGENT_ID,
    NOW,
    command_id,
    make_command,
    make_script,
    payload_of,
    sealed,
)
from tests.fleet.agent.server import CREDENTIAL, FakeServer, Response, as_json
from tests.fleet.agent.until import until

NEW = f"kag1_{AGENT_ID}_{'n' * 43}_00000000"
MIB = 1024 * 1024


class Rig:
    """An exchange on a workbench, with a server to talk to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server = FakeServer()
        self.bench = Bench(folder)
        self.gate, self.work = self.bench.gate, self.bench.work
        self.gate.set_freeze(Freeze(unreadable=True))
        found = read_identity(self.server.enrolled(), server=self.server.url, name="pc-1")
        identity.save(folder, found)
        self.identity = IdentityFile(folder, found)
        self.transport = Transport(read_address(self.server.url))
        self.facts: dict[str, object] = {"zone": "UTC"}
        self.local = LocalSchedules(
            folder,
            pinned=lambda: self.identity.current.pinned,
            work=self.work,
            gate=self.gate,
            clock=self.bench.clock,
        )
        self.exchange = self.new_start()

    def new_start(self) -> Exchange:
        return Exchange(
            identity=self.identity,
            transport=self.transport,
            work=self.work,
            outbox=self.bench.outbox,
            journal=self.bench.journal,
            gate=self.gate,
            clock=self.bench.clock,
            pace=Pace(),
            local=self.local,
            last_word=LastWordFile(self.folder),
            read_facts=lambda: dict(self.facts),
        )

    def talk(self) -> Talk:
        return self.exchange.once()

    @property
    def said(self) -> dict[str, Any]:
        return self.server.exchanges[-1]

    def forbidden(self) -> str | None:
        return self.gate.forbids(NOW, override_freeze=False)

    def close(self) -> None:
        self.bench.close()
        self.transport.close()
        self.server.close()


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.close()


def test_the_first_exchange_asks_for_an_epoch_and_says_who_is_there(rig: Rig) -> None:
    talk = rig.talk()
    assert (talk.ok, talk.ticket, talk.next_in_s) == (True, "ticket-1", 0.3)
    assert set(rig.said) == {
        "protocol", "epoch", "seq", "boot_id", "fingerprint", "facts", "sent_at", "mono",
        "holding", "started", "results", "output",
    }  # fmt: skip
    assert (rig.said["protocol"], rig.said["epoch"], rig.said["seq"]) == (1, None, 1)
    assert rig.said["facts"] == {"zone": "UTC"}
    assert rig.server.credentials == [CREDENTIAL]


def test_later_exchanges_carry_the_epoch_and_only_changed_facts(rig: Rig) -> None:
    rig.talk()
    rig.talk()
    assert (rig.said["epoch"], rig.said["seq"], "facts" in rig.said) == (1, 2, False)
    rig.facts["zone"] = "Europe/Oslo"
    rig.talk()
    assert rig.said["facts"] == {"zone": "Europe/Oslo"}


def test_facts_are_said_again_until_an_exchange_succeeds(rig: Rig) -> None:
    rig.server.once(Response(500))
    rig.talk()
    rig.talk()
    assert "facts" in rig.said


def test_a_new_start_asks_for_a_new_epoch(rig: Rig) -> None:
    rig.talk()
    rig.exchange = rig.new_start()
    rig.talk()
    assert (rig.said["epoch"], rig.said["seq"]) == (None, 2)


def test_a_command_is_held_started_and_answered_for(rig: Rig) -> None:
    rig.server.give(make_command(script=make_script("echo hi\n")))
    assert rig.talk().came == 1
    assert rig.work.holding() == [command_id()]
    rig.bench.result(command_id())
    rig.talk()
    assert rig.said["started"][0]["command"] == command_id()
    stdout = rig.server.results[command_id()]["output"]["stdout"]
    assert b64decode(stdout["head"]) == b"hi\n"
    assert len(rig.bench.outbox) == 0
    rig.talk()
    assert (rig.said["started"], rig.said["results"], rig.said["holding"]) == ([], [], [])


def test_a_kept_connection_that_broke_is_tried_again_at_once_with_the_same_words(
    rig: Rig,
) -> None:
    rig.talk()
    rig.server.once(Response(0, lost=True))
    assert rig.talk().ok
    assert rig.server.exchanges[-1] == rig.server.exchanges[-2]


def test_what_is_held_is_not_handed_over_again(rig: Rig) -> None:
    rig.server.give(make_command(start_after=NOW + timedelta(minutes=30)))
    rig.talk()
    rig.talk()
    assert rig.said["holding"] == [command_id()]
    assert rig.work.holding() == [command_id()]


def test_what_waits_and_the_server_does_not_know_any_more_is_dropped(rig: Rig) -> None:
    rig.server.give(make_command(1, start_after=NOW + timedelta(minutes=30)))
    rig.server.give(make_command(2, start_after=NOW + timedelta(minutes=30)))
    rig.talk()
    rig.server.extra = {"verdicts": {command_id(1): "unknown"}}
    rig.talk()
    assert rig.work.holding() == [command_id(2)]


def test_a_lost_answer_loses_nothing_and_doubles_nothing(rig: Rig, tmp_path: Path) -> None:
    rig.talk()
    rig.server.give(make_command(script=make_script(f"echo ran >> {tmp_path}/ran\n")))
    rig.server.lose_reply()
    assert rig.talk().ok is False
    assert rig.work.holding() == []
    rig.talk()
    rig.bench.result(command_id())
    rig.server.lose_reply()
    rig.talk()
    assert len(rig.bench.outbox) == 1
    rig.talk()
    assert len(rig.bench.outbox) == 0
    assert (tmp_path / "ran").read_text() == "ran\n"
    assert list(rig.server.results) == [command_id()]


def test_the_freeze_is_applied_before_what_came_with_it(rig: Rig) -> None:
    rig.server.freeze |= {"frozen": True, "reason": "audit"}
    rig.server.give(make_command())
    rig.talk()
    rig.work.step()
    assert (rig.forbidden(), rig.work.running()) == ("frozen: audit", 0)
    rig.server.freeze |= {"frozen": False}
    rig.talk()
    assert rig.bench.result(command_id())["outcome"] == "succeeded"


def test_a_kill_is_applied_before_what_came_with_it(rig: Rig) -> None:
    rig.server.kill = [command_id()]
    rig.server.give(make_command())
    rig.talk()
    assert rig.bench.result(command_id())["outcome"] == "killed"


def test_a_forged_command_is_refused_and_reported(rig: Rig) -> None:
    forged = sealed(payload_of(make_command()), by=Ed25519PrivateKey.from_private_bytes(b"f" * 32))
    rig.server.pending[command_id()] = forged
    assert rig.talk().came == 0
    rig.talk()
    result = rig.server.results[command_id()]
    assert (result["outcome"], result["started_at"]) == ("refused", None)
    assert "pinned key" in result["reason"]


def test_one_bad_command_does_not_spoil_the_others(rig: Rig) -> None:
    rig.server.pending = {"bad": "rubbish", "worse": sealed(b"[")}
    rig.server.give(make_command())
    assert rig.talk().came == 1


def test_an_expired_command_is_reported_and_not_run(rig: Rig) -> None:
    rig.server.give(make_command(deadline_at=NOW - timedelta(seconds=1)))
    rig.talk()
    rig.talk()
    assert rig.server.results[command_id()]["outcome"] == "expired"


def test_a_finished_command_that_comes_again_is_answered_for_from_the_journal(
    rig: Rig, tmp_path: Path
) -> None:
    command = make_command(script=make_script(f"echo ran >> {tmp_path}/ran; exit 3\n"))
    rig.server.give(command)
    rig.talk()
    rig.bench.result(command_id())
    rig.talk()
    rig.server.results.clear()
    rig.server.started.clear()
    rig.server.give(command)
    rig.talk()
    rig.talk()
    result = rig.server.results[command_id()]
    assert (result["outcome"], result["exit_code"]) == ("failed", 3)
    assert (tmp_path / "ran").read_text() == "ran\n"


def test_a_command_of_a_later_epoch_makes_earlier_ones_strangers(rig: Rig) -> None:
    rig.server.give(make_command(1, server_epoch=2))
    rig.talk()
    assert rig.identity.current.server_epoch == 2
    rig.server.give(make_command(2, server_epoch=1))
    rig.talk()
    rig.talk()
    assert "last restore" in rig.server.results[command_id(2)]["reason"]


def test_live_output_is_sent_with_its_offset_and_repeated_when_lost(
    rig: Rig, tmp_path: Path
) -> None:
    text = f"echo one; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; echo two\n"
    rig.server.give(make_command(script=make_script(text)))
    rig.talk()
    rig.work.step()
    until(rig.work.has_live, what="output")
    rig.server.once(Response(503))
    rig.talk()
    lost = rig.said["output"]
    rig.talk()
    assert rig.said["output"] == lost == rig.server.output
    assert (lost[0]["offset"], b64decode(lost[0]["bytes"])) == (0, b"one\n")
    (tmp_path / "go").touch()
    rig.bench.result(command_id())


def test_a_new_credential_is_used_next_and_the_old_one_forgotten_then(rig: Rig) -> None:
    rig.server.extra = {"credential": NEW}
    rig.talk()
    rig.server.extra = {}
    rig.server.valid_credentials = {NEW}
    assert rig.talk().ok
    assert rig.server.credentials == [CREDENTIAL, NEW]
    assert rig.identity.current.older_credential is None


def test_a_new_credential_that_the_server_does_not_know_locks_nobody_out(rig: Rig) -> None:
    rig.server.extra = {"credential": NEW}
    rig.talk()
    rig.server.extra = {}
    first = rig.talk()
    assert (first.ok, first.is_refusal) == (False, False)
    assert rig.talk().ok
    assert rig.server.credentials == [CREDENTIAL, NEW, CREDENTIAL]


def test_after_a_crash_with_a_new_credential_both_are_there(rig: Rig, tmp_path: Path) -> None:
    rig.server.extra = {"credential": NEW}
    rig.talk()
    stored = identity.load(tmp_path)
    assert stored is not None
    assert (stored.credential, stored.older_credential) == (NEW, CREDENTIAL)


REFUSALS = [
    (401, "the server does not know this agent any more"),
    (403, "the server has not accepted this agent"),
    (409, "another machine holds this identity; an operator must accept one"),
]


@pytest.mark.parametrize(("status", "reason"), REFUSALS)
def test_a_refused_agent_takes_no_work_and_asks_seldom(rig: Rig, status: int, reason: str) -> None:
    rig.server.give(make_command(start_after=NOW + timedelta(seconds=1)))
    rig.talk()
    rig.server.once(as_json(status, {"title": "No"}))
    talk = rig.talk()
    assert (talk.ok, talk.is_refusal, rig.forbidden()) == (False, True, reason)
    assert talk.next_in_s >= 150
    rig.bench.advance(5)
    rig.work.step()
    assert rig.work.running() == 0
    rig.talk()
    assert rig.forbidden() is None


def test_after_a_409_the_agent_keeps_its_epoch_so_that_clones_take_no_turns(rig: Rig) -> None:
    rig.talk()
    rig.server.once(as_json(409, {}))
    rig.talk()
    rig.talk()
    assert rig.said["epoch"] == 1


def test_a_409_does_not_stop_what_runs_and_its_result_is_kept(rig: Rig, tmp_path: Path) -> None:
    text = f"touch {tmp_path}/began; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done\n"
    rig.server.give(make_command(script=make_script(text)))
    rig.talk()
    rig.work.step()
    until((tmp_path / "began").exists, what="the start")
    rig.server.once(as_json(409, {}))
    rig.talk()
    (tmp_path / "go").touch()
    assert rig.bench.result(command_id())["outcome"] == "succeeded"


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_a_busy_server_is_asked_again_not_before_its_word(rig: Rig, status: int) -> None:
    rig.server.once(Response(status, headers={"Retry-After": "40"}))
    talk = rig.talk()
    assert (talk.ok, talk.is_refusal) == (False, False)
    assert talk.next_in_s >= 40


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", b'{"server_time": 1}', b"[" * 100])
def test_an_answer_that_cannot_be_read_changes_nothing(rig: Rig, body: bytes) -> None:
    rig.work.refuse(command_id(), Outcome.REFUSED, "x")
    rig.server.once(Response(200, body))
    talk = rig.talk()
    assert talk.ok is False
    assert "cannot be read" in talk.problem
    assert rig.forbidden() is not None
    assert len(rig.bench.outbox) == 1


def test_no_number_is_used_twice_whatever_happens(rig: Rig) -> None:
    for response in (Response(500), Response(200, b"x"), as_json(409, {})):
        rig.server.once(response)
        rig.talk()
    rig.talk()
    assert [body["seq"] for body in rig.server.exchanges] == [1, 2, 3, 4]


def test_a_full_disk_sends_nothing(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fleet.agent.state.write_private", no_space)
    talk = rig.talk()
    assert (talk.ok, rig.server.exchanges) == (False, [])
    assert "No space left" in talk.problem


def results_in(body: dict[str, Any]) -> list[str]:
    return [result["command"] for result in body["results"]]


def poison(command: str) -> Callable[[dict[str, Any]], Response | None]:
    def fault(body: dict[str, Any]) -> Response | None:
        return as_json(400, {"title": "Bad"}) if command in results_in(body) else None

    return fault


def test_one_result_that_the_server_cannot_read_does_not_hold_up_the_others(rig: Rig) -> None:
    for number in (1, 2, 3):
        rig.work.refuse(command_id(number), Outcome.REFUSED, "x")
    rig.server.faults.append(poison(command_id(1)))
    for _ in range(5):
        rig.talk()
    assert sorted(rig.server.results) == [command_id(2), command_id(3)]
    assert len(rig.bench.outbox) == 1


@pytest.mark.parametrize("verdict", ["conflict", "unknown"])
def test_a_result_that_is_not_wanted_is_not_sent_again(rig: Rig, verdict: str) -> None:
    rig.work.refuse(command_id(), Outcome.REFUSED, "x")
    rig.server.extra = {"verdicts": {command_id(): verdict}}
    rig.talk()
    rig.talk()
    assert rig.said["results"] == []


def test_a_result_without_a_verdict_waits_and_is_sent_again(rig: Rig) -> None:
    rig.work.refuse(command_id(), Outcome.REFUSED, "x")
    rig.server.extra = {"verdicts": {}}
    rig.talk()
    rig.talk()
    assert rig.said["results"] == []
    rig.bench.advance(1)
    rig.server.extra = {}
    rig.talk()
    assert results_in(rig.said) == [command_id()]
    assert len(rig.bench.outbox) == 0


def test_no_message_is_over_four_mebibytes_and_all_results_get_there(rig: Rig) -> None:
    for number in range(1, 4):
        text = "head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2\n"
        rig.server.give(make_command(number, script=make_script(text, max_output=MIB)))
    rig.talk()
    for number in range(1, 4):
        rig.bench.result(command_id(number))
    while len(rig.bench.outbox):
        assert rig.talk().ok
    assert len(rig.server.results) == 3
    sizes = [len(json.dumps(body)) for body in rig.server.exchanges]
    assert max(sizes) <= transport.MAX_BYTES
    assert max(sizes) > 2 * MIB


def test_the_servers_time_is_what_counts_however_wrong_the_pcs_clock_is(rig: Rig) -> None:
    rig.server.now = lambda: NOW + timedelta(days=400)
    rig.talk()
    assert rig.bench.clock.now() == NOW + timedelta(days=400)
    rig.server.give(make_command())
    rig.talk()
    rig.talk()
    assert rig.server.results[command_id()]["outcome"] == "expired"


def test_a_bundle_is_taken_and_its_etag_said_until_the_server_knows(rig: Rig) -> None:
    rig.talk()
    assert "schedules_etag" not in rig.said["facts"]
    rig.server.extra = {"schedules": parts((schedule_document(), job_document()), etag="e9")}
    rig.talk()
    rig.server.extra = {}
    rig.talk()
    assert rig.said["facts"] == {"zone": "UTC", "schedules_etag": "e9"}
    rig.talk()
    assert "facts" not in rig.said


def test_a_bundle_that_is_not_right_does_not_spoil_the_exchange(rig: Rig) -> None:
    rig.server.extra = {"schedules": ["rubbish"]}
    rig.server.give(make_command())
    assert rig.talk().came == 1
    assert rig.local.etag == ""


def test_a_fire_of_the_agents_own_is_told_with_its_schedule(rig: Rig) -> None:
    rig.server.extra = {"schedules": parts((schedule_document(), job_document()))}
    rig.talk()
    rig.server.extra = {}
    rig.local.step()
    rig.work.step()
    until(lambda: len(rig.bench.outbox) == 1, what="the result")
    rig.talk()
    (result,) = rig.said["results"]
    (started,) = rig.said["started"]
    assert result["local"] == started["local"]
    assert result["local"]["schedule"] == "inventory-1h"
    assert rig.said["holding"] == []


def test_what_the_server_said_of_the_freeze_is_on_disk(rig: Rig, tmp_path: Path) -> None:
    rig.server.freeze |= {"frozen": True, "reason": "audit"}
    rig.talk()
    word = LastWordFile(tmp_path).read()
    assert word is not None
    assert (word.freeze, word.server_time) == (Freeze(frozen=True, reason="audit"), NOW)


def test_before_any_answer_the_gate_is_closed(tmp_path: Path) -> None:
    assert Gate().forbids(None, override_freeze=False) is not None
