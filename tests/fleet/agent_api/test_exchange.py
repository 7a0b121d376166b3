"""`POST /api/agent/v1/exchange`."""

import json
from base64 import b64decode
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from fleet.agent_api import views
from fleet.flow.signing import server_signer
from fleet.models import (
    Agent,
    AgentPresence,
    AgentState,
    Command,
    Freeze,
    ScheduleAgent,
    ServerIdentity,
    new_id,
)
from fleet.operations.agents import accept_rival, revoke_agent
from fleet.operations.tokens import ticket_key
from fleet.rules.command_states import CommandState
from fleet.rules.tickets import read_ticket
from scheduler.public import Actor
from tests.fleet.agent_api.asking import EXCHANGE, Pc, give_credential, post
from tests.fleet.flow.reporting import result_item
from tests.fleet.make import NOW, make_agent, make_command, make_schedule, make_schedule_agent

pytestmark = pytest.mark.django_db
S = CommandState
ALICE = Actor("user", "alice")
FAR = datetime(2100, 1, 1, tzinfo=NOW.tzinfo)


def command_for(pc: Pc, **fields: Any) -> Command:
    return make_command(pc.agent, **({"deadline_at": FAR} | fields))


def ids(told: dict[str, Any]) -> list[str]:
    payloads = [json.loads(b64decode(one["payload"])) for one in told["commands"]]
    return [payload["cmd_id"] for payload in payloads]


def agent_of(pc: Pc) -> Agent:
    return Agent.objects.get(pk=pc.agent.pk)


# --- what is told --------------------------------------------------------------------------


def test_an_exchange_without_news_is_answered_in_full() -> None:
    pc = Pc()

    told = pc.exchanges()

    at = datetime.fromisoformat(told.pop("server_time"))
    ticket = read_ticket(told.pop("wait_ticket"), key=ticket_key(), now=at)
    assert told == {
        "epoch": 1,
        "verdicts": {},
        "commands": [],
        "kill": [],
        "freeze": {
            "frozen": False,
            "reason": "",
            "from": None,
            "until": None,
            "unreadable": False,
        },
        "schedules_etag": "",
        "schedules": None,
        "next_in_s": 30.0,
    }
    assert ticket is not None
    assert ticket.agent_id == pc.agent.pk
    assert abs(at - timezone.now()) < timedelta(minutes=1)


def test_no_answer_sets_a_cookie_or_is_kept_by_caches() -> None:
    response = Pc().sends()

    assert response.cookies == {}
    assert "Set-Cookie" not in response.headers
    assert response.headers["Cache-Control"] == "no-store"


def test_the_agent_is_told_of_the_freeze_and_gets_nothing() -> None:
    pc = Pc()
    command_for(pc)
    Freeze.objects.update(is_set=True, reason="audit", ends="2100-01-01T00:00:00Z", tz="utc")

    told = pc.exchanges()

    assert told["commands"] == []
    assert told["freeze"]["frozen"] is True
    assert told["freeze"]["reason"] == "audit"
    assert told["freeze"]["until"] == "2100-01-01T00:00:00+00:00"


def test_a_freeze_that_cannot_be_read_is_told_as_such() -> None:
    Freeze.objects.all().delete()

    freeze = Pc().exchanges()["freeze"]

    assert (freeze["frozen"], freeze["unreadable"]) == (True, True)


def test_a_command_goes_out_starts_and_ends() -> None:
    pc = Pc()
    command = command_for(pc)
    key = str(command.pk)

    assert ids(pc.exchanges()) == [key]
    started = [{"command": key, "attempt": 1, "started_at": timezone.now().isoformat()}]
    assert pc.exchanges(holding=[key], started=started)["commands"] == []
    told = pc.exchanges(results=[result_item(command)])

    command.refresh_from_db()
    assert told["verdicts"] == {key: "stored"}
    assert command.state == "succeeded"


def test_more_than_fits_is_asked_for_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "ROOM_FOR_COMMANDS", 10)
    pc = Pc()
    command_for(pc)
    command_for(pc)

    told = pc.exchanges()

    assert (len(told["commands"]), told["next_in_s"]) == (1, 0.0)


def test_what_is_to_be_stopped_is_named_until_it_has_ended() -> None:
    pc = Pc()
    command = command_for(pc, state=S.STARTED, kill_requested_at=NOW)
    key = str(command.pk)

    assert pc.exchanges(holding=[key])["kill"] == [key]
    told = pc.exchanges(results=[result_item(command, outcome="killed")])
    assert (told["verdicts"], told["kill"]) == ({key: "stored"}, [])


@pytest.mark.parametrize("state", [S.CANCELLED, S.SKIPPED, S.EXPIRED])
def test_what_the_server_has_ended_is_stopped_where_it_is_held(state: CommandState) -> None:
    pc = Pc()
    key = str(command_for(pc, state=state).pk)

    assert pc.exchanges(holding=[key])["kill"] == [key]


@pytest.mark.parametrize("state", [S.OUTCOME_UNKNOWN, S.SUCCEEDED])
def test_what_may_still_answer_is_not_stopped(state: CommandState) -> None:
    pc = Pc()
    key = str(command_for(pc, state=state).pk)

    assert pc.exchanges(holding=[key])["kill"] == []


# --- who it is -----------------------------------------------------------------------------


def test_a_start_gets_a_new_epoch_and_later_exchanges_carry_it() -> None:
    pc = Pc(epoch=None)

    assert pc.exchanges()["epoch"] == 2
    assert pc.exchanges()["epoch"] == 2
    assert (agent_of(pc).epoch, agent_of(pc).boot_id) == (2, "boot-1")


def test_a_start_whose_reply_was_lost_keeps_its_epoch() -> None:
    pc = Pc(epoch=None)
    message = pc.says()

    first = post(EXCHANGE, message, credential=pc.credential).json()
    second = post(EXCHANGE, message, credential=pc.credential).json()

    assert (first["epoch"], second["epoch"]) == (2, 2)


def test_after_a_lost_reply_the_same_commands_are_answered_again() -> None:
    pc = Pc()
    command = command_for(pc)
    message = pc.says()

    first = post(EXCHANGE, message, credential=pc.credential).json()
    second = post(EXCHANGE, message, credential=pc.credential).json()

    assert ids(first) == ids(second) == [str(command.pk)]
    assert first["commands"] == second["commands"]


def test_an_old_message_is_taken_and_gets_nothing() -> None:
    pc = Pc()
    command = command_for(pc)
    done = command_for(pc, state=S.STARTED)
    old = pc.says(results=[result_item(done)])
    presence = AgentPresence.objects.filter(pk=pc.agent.pk)
    presence.update(seq=7)

    told = post(EXCHANGE, old, credential=pc.credential).json()

    command.refresh_from_db()
    assert told["verdicts"] == {str(done.pk): "stored"}
    assert told["commands"] == []
    assert command.state == "queued"
    assert presence.get().seq == 7


def test_an_older_start_is_refused_and_takes_nothing_over() -> None:
    pc = Pc(epoch=None)
    pc.exchanges()
    command = command_for(pc)
    done = command_for(pc, state=S.STARTED)

    response = pc.sends(epoch=1, results=[result_item(done)])

    command.refresh_from_db()
    done.refresh_from_db()
    assert response.status_code == 409
    assert response.headers["Content-Type"] == "application/problem+json"
    assert (command.state, done.state) == ("queued", "started")
    assert agent_of(pc).rival_fingerprint == "f" * 64


def test_another_machine_is_refused_shown_and_leaves_the_first_one_alone() -> None:
    pc = Pc()
    command = command_for(pc)
    before = AgentPresence.objects.values().get()

    response = pc.sends(fingerprint="b" * 64, epoch=None)

    agent = agent_of(pc)
    assert response.status_code == 409
    assert (agent.rival_fingerprint, agent.fingerprint) == ("b" * 64, "f" * 64)
    assert (agent.state, agent.epoch) == (AgentState.ACTIVE, 1)
    assert AgentPresence.objects.values().get() == before
    assert ids(pc.exchanges()) == [str(command.pk)]


def test_a_stranger_that_comes_again_at_once_is_not_written_down_again() -> None:
    pc = Pc()
    pc.sends(fingerprint="b" * 64)

    with CaptureQueriesContext(connection) as captured:
        pc.sends(fingerprint="b" * 64)

    assert [query for query in captured if "UPDATE" in query["sql"]] == []


def test_a_machine_that_was_accepted_goes_on_and_the_former_one_is_refused() -> None:
    pc = Pc()
    pc.exchanges()
    pc.sends(fingerprint="b" * 64, epoch=None)
    accept_rival(agent_of(pc), actor=ALICE, now=NOW)

    assert pc.sends(fingerprint="b" * 64, epoch=None).status_code == 200
    assert pc.sends().status_code == 409


def test_an_agent_that_waits_to_be_accepted_is_heard_and_gets_nothing() -> None:
    pc = Pc(make_agent(state=AgentState.PENDING, last_seen_at=None))
    command = command_for(pc)

    told = pc.exchanges()

    command.refresh_from_db()
    assert (told["commands"], command.state) == ([], "queued")
    assert AgentPresence.objects.get().last_seen_at is not None


def test_a_revoked_agent_is_out_from_its_next_request_on() -> None:
    pc = Pc()
    assert pc.sends().status_code == 200

    revoke_agent(pc.agent, actor=ALICE, now=NOW)

    assert pc.sends().status_code == 401


# --- what is noted -------------------------------------------------------------------------


def test_presence_is_noted_with_number_and_clock() -> None:
    pc = Pc(make_agent(last_seen_at=None))
    ahead = timezone.now() + timedelta(hours=1)

    pc.exchanges(sent_at=ahead.isoformat(), mono=12.5)

    presence = AgentPresence.objects.get()
    assert presence.seq == 1
    assert presence.last_seen_at is not None
    assert abs(presence.skew_ms - 3_600_000) < 30_000


@pytest.mark.parametrize("sent_at", ["", "0001-01-01T00:00:00+00:00", "soon", 5, None])
def test_a_clock_that_says_nothing_useful_harms_nothing(sent_at: object) -> None:
    assert Pc().sends(sent_at=sent_at).status_code == 200


def test_changed_facts_are_kept_and_cleaned() -> None:
    pc = Pc()

    pc.exchanges(
        facts={"zone": "Europe/Budapest", "os": "Lin\0ux", "shells": ["sh", 3], "code_page": 850}
    )

    agent = agent_of(pc)
    assert agent.zone == "Europe/Budapest"
    assert agent.facts == {
        "zone": "Europe/Budapest",
        "os": "Lin\ufffdux",
        "shells": ["sh"],
        "code_page": "850",
    }


def test_a_zone_that_cannot_be_mapped_is_utc_with_a_warning() -> None:
    pc = Pc()

    pc.exchanges(facts={"zone": "A" * 5000})

    assert agent_of(pc).zone == "UTC"
    assert "read as UTC" in agent_of(pc).facts["zone_warning"]


def test_what_was_parked_while_the_pc_was_silent_is_due_again() -> None:
    pc = Pc(make_agent(last_seen_at=NOW - timedelta(days=1)))
    mine = make_schedule_agent(make_schedule(), pc.agent, due_at=None, parked_due_at=NOW)
    other = make_schedule_agent(make_schedule(), make_agent(), due_at=None, parked_due_at=NOW)

    pc.exchanges()

    mine.refresh_from_db()
    other.refresh_from_db()
    assert (mine.due_at, mine.parked_due_at) == (NOW, None)
    assert (other.due_at, other.parked_due_at) == (None, NOW)
    assert ScheduleAgent.objects.count() == 2


# --- one agent and another -----------------------------------------------------------------


def test_a_foreign_command_is_answered_like_one_that_never_was() -> None:
    pc, other = Pc(), Pc()
    foreign = command_for(other, state=S.STARTED)
    stranger = new_id()
    before = list(Command.objects.filter(agent=other.agent).values())

    def told(key: UUID) -> str:
        message = pc.says(
            holding=[str(key)],
            started=[{"command": str(key), "attempt": 1, "started_at": None}],
            results=[result_item(key)],
            output=[{"command": str(key), "stream": "stdout", "offset": 0, "bytes": "aGk="}],
        )
        response = post(EXCHANGE, message, credential=pc.credential)
        body: dict[str, Any] = response.json()
        for varying in ("server_time", "wait_ticket"):
            body.pop(varying)
        return json.dumps(body).replace(str(key), "KEY")

    assert told(foreign.pk) == told(stranger)
    assert list(Command.objects.filter(agent=other.agent).values()) == before


@pytest.mark.parametrize("key", ["", "x", "1", "../", "0" * 36, "\ud800", "A" * 10_000, "\0"])
def test_a_name_that_cannot_be_a_command_is_unknown(key: str) -> None:
    told = Pc().exchanges(holding=[key], results=[{"command": key}])

    assert told["verdicts"] == {key[:64]: "unknown"}


@pytest.mark.parametrize("item", [None, 5, "x", [], {}, {"command": 7}, {"command": None}])
def test_an_item_that_names_nothing_stops_nothing(item: object) -> None:
    pc = Pc()
    done = command_for(pc, state=S.STARTED)

    told = pc.exchanges(results=[item, result_item(done)], started=[item], output=[item])

    assert told["verdicts"] == {str(done.pk): "stored"}


# --- credentials ---------------------------------------------------------------------------


def test_an_old_credential_is_replaced_in_two_steps() -> None:
    pc = Pc(make_agent(credential_at=timezone.now() - timedelta(days=31)))
    new = pc.exchanges()["credential"]
    assert "credential" not in pc.exchanges()

    former, pc.credential = pc.credential, new
    assert "credential" not in pc.exchanges()

    assert post(EXCHANGE, pc.says(), credential=former).status_code == 401
    assert pc.sends().status_code == 200


# --- when the server cannot ----------------------------------------------------------------


def test_a_database_that_is_gone_is_told_as_come_back_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def gone(*_: object, **__: object) -> None:
        raise OperationalError("the server closed the connection")

    monkeypatch.setattr(views, "exchange", gone)

    response = Pc().sends()

    assert (response.status_code, response.headers["Retry-After"]) == (503, "5")


def test_without_the_servers_key_nothing_goes_out() -> None:
    pc = Pc()
    command = command_for(pc)
    server_signer()
    ServerIdentity.objects.update(public_key=bytes(32))

    response = pc.sends()

    command.refresh_from_db()
    assert (response.status_code, command.state) == (503, "queued")


# --- cost ----------------------------------------------------------------------------------


def test_an_exchange_without_news_is_one_look_and_one_write_and_locks_nothing() -> None:
    pc = Pc()

    with CaptureQueriesContext(connection) as captured:
        pc.exchanges()

    words = [query["sql"].strip().split(" ", 1)[0] for query in captured]
    assert words == ["SELECT", "UPDATE"]
    assert captured[1]["sql"].strip().startswith("UPDATE fleet_agentpresence")
    assert not any("FOR " in query["sql"] for query in captured)


def test_the_credential_counts_in_its_header_alone() -> None:
    pc = Pc()
    credential = give_credential(pc.agent)

    assert post(f"{EXCHANGE}?token={credential}", pc.says()).status_code == 401
    assert post(EXCHANGE, pc.says(credential=credential)).status_code == 401
    assert post(EXCHANGE, pc.says(), Cookie=f"kanade={credential}").status_code == 401
