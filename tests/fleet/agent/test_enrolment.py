"""A PC enrols once, however often the answer is lost."""

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.agent import enrolment, identity, state
from fleet.agent.address import read_address
from fleet.agent.enrolment import RefusedError
from fleet.agent.identity import Identity
from fleet.agent.transport import Transport, UnreachableError
from tests.fleet.agent.make import AGENT_ID, PUBLIC_KEY
from tests.fleet.agent.server import FakeServer, Response, as_json


@pytest.fixture
def server() -> Iterator[FakeServer]:
    made = FakeServer()
    yield made
    made.close()


def begin(folder: Path, token: str | None = "ken1_t", name: str = "pc-1") -> enrolment.Request:
    found = enrolment.begin(folder, server="https://k", token=token, name=name)
    assert found is not None
    return found


def ask(folder: Path, server: FakeServer, token: str | None = "ken1_t") -> Identity:
    transport = Transport(read_address(server.url))
    try:
        return enrolment.ask(folder, begin(folder, token), transport)
    finally:
        transport.close()


def test_a_pc_becomes_an_agent(tmp_path: Path, server: FakeServer) -> None:
    found = ask(tmp_path, server)
    assert (found.agent_id, found.server_key, found.name) == (AGENT_ID, PUBLIC_KEY, "pc-1")
    assert identity.load(tmp_path) == found
    said = server.enrolments[0]
    assert (said["protocol"], said["token"], said["name"]) == (1, "ken1_t", "pc-1")
    assert len(said["nonce"]) == 43
    assert len(said["fingerprint"]) == 64
    assert set(said["facts"]) == {"zone", "os", "shells", "code_page", "agent_version"}


def test_afterwards_the_token_is_gone_from_the_disk(tmp_path: Path, server: FakeServer) -> None:
    ask(tmp_path, server)
    assert all(b"ken1_t" not in path.read_bytes() for path in tmp_path.iterdir())


def test_the_nonce_is_stored_privately_before_it_is_sent(tmp_path: Path) -> None:
    request = begin(tmp_path)
    path = tmp_path / "enrolment.json"
    assert request.nonce in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_after_a_lost_answer_the_same_nonce_is_sent_also_without_the_token(
    tmp_path: Path, server: FakeServer
) -> None:
    server.once(Response(0, lost=True))
    with pytest.raises(UnreachableError):
        ask(tmp_path, server)
    assert identity.load(tmp_path) is None
    ask(tmp_path, server, token=None)
    first, second = server.enrolments
    assert (first["nonce"], first["token"]) == (second["nonce"], second["token"])


def test_another_token_is_another_enrolment(tmp_path: Path) -> None:
    first, second = begin(tmp_path, "ken1_a"), begin(tmp_path, "ken1_b")
    assert first.nonce != second.nonce
    assert begin(tmp_path, None).token == "ken1_b"


def test_without_a_token_there_is_nothing_to_begin(tmp_path: Path) -> None:
    assert enrolment.begin(tmp_path, server="https://k", token=None, name="pc") is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 422])
def test_a_refusal_says_what_the_server_said_and_stores_nothing(
    tmp_path: Path, server: FakeServer, status: int
) -> None:
    server.once(as_json(status, {"title": "Not enrolled", "detail": "the token opens nothing"}))
    with pytest.raises(RefusedError, match=f"{status} Not enrolled: the token opens nothing"):
        ask(tmp_path, server)
    assert identity.load(tmp_path) is None


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
def test_a_busy_server_is_worth_asking_again(
    tmp_path: Path, server: FakeServer, status: int
) -> None:
    server.once(Response(status, b"<html>", {"Retry-After": "9"}))
    with pytest.raises(UnreachableError) as caught:
        ask(tmp_path, server)
    assert caught.value.retry_after_s == 9.0


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"<html>", b'{"agent_id": 1}'])
def test_an_answer_that_cannot_be_read_stores_nothing(
    tmp_path: Path, server: FakeServer, body: bytes
) -> None:
    server.once(Response(201, body))
    with pytest.raises(UnreachableError, match="cannot be read"):
        ask(tmp_path, server)
    assert identity.load(tmp_path) is None


def test_a_key_that_verifies_everything_is_not_pinned(tmp_path: Path, server: FakeServer) -> None:
    server.once(as_json(201, server.enrolled(server_key="AQ" + "A" * 41 + "=")))
    with pytest.raises(UnreachableError, match="server_key"):
        ask(tmp_path, server)


@pytest.mark.parametrize("data", [b"{", b"{}", b'{"token": "ken1_t", "name": 5}'])
def test_a_damaged_enrolment_file_is_named(tmp_path: Path, data: bytes) -> None:
    state.write_private(tmp_path / "enrolment.json", data)
    with pytest.raises(state.StateError, match="damaged"):
        begin(tmp_path, None)
