"""`--check`: each thing that can be wrong is named in plain words, with what to do."""

import os
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fleet.agent import checkup_server, identity
from fleet.agent.checkup import check
from fleet.agent.identity import read_identity
from fleet.operations.tokens import Purpose, new_token
from tests.fleet.agent.server import FakeServer
from tests.fleet.agent.tls import secure_server


@pytest.fixture
def server() -> Iterator[FakeServer]:
    made = FakeServer()
    yield made
    made.close()


@pytest.fixture
def folder(tmp_path: Path, server: FakeServer) -> Path:
    """The folder of an agent that has enrolled."""
    made = tmp_path / "state"
    made.mkdir(mode=0o700)
    identity.save(made, read_identity(server.enrolled(), server=server.url, name="pc-1"))
    return made


class Told:
    """What a check prints, by part."""

    def __init__(self, good: bool, text: str) -> None:
        self.good = good
        lines = [line.partition(": ") for line in text.splitlines()]
        self.parts = {head[4:]: (head[:3].strip(), words) for head, _, words in lines}

    def is_bad(self, part: str, words: str) -> bool:
        return self.parts[part][0] == "BAD" and words in self.parts[part][1] and not self.good


Check = Callable[..., Told]


@pytest.fixture
def checked(folder: Path, capsys: pytest.CaptureFixture[str]) -> Check:
    """Check the folder of the agent, or another one, by its options."""

    def look(
        place: Path = folder,
        *,
        url: str | None = None,
        ca: Path | None = None,
        token: str | None = None,
    ) -> Told:
        return Told(check(place, url=url, ca=ca, token=token), capsys.readouterr().out)

    return look


def test_a_pc_that_is_set_up_well_is_told_so(checked: Check, server: FakeServer) -> None:
    told = checked()

    assert told.good
    assert {state for state, _ in told.parts.values()} == {"ok"}
    assert told.parts["clock"][1] == "agrees with the server's"
    assert told.parts["credential"][1] == "the server knows it"
    assert server.exchanges == []


def bad_server(checked: Check, url: str, words: str) -> bool:
    return checked(url=url).is_bad("server", words)


def test_a_name_that_nobody_knows_is_a_matter_of_dns(
    checked: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert bad_server(checked, "https://kanade.invalid", "the name kanade.invalid is not known")


def test_a_port_where_nobody_listens_refuses(checked: Check) -> None:
    assert bad_server(checked, "http://127.0.0.1:9", "127.0.0.1:9 refuses connections")


def test_a_certificate_of_an_unknown_authority_asks_for_it(checked: Check, tmp_path: Path) -> None:
    with secure_server(tmp_path) as (url, _):
        assert bad_server(checked, url, "is not trusted (self-signed certificate): give its")


def test_a_server_without_tls_is_told_as_such(checked: Check, server: FakeServer) -> None:
    port = server.url.rpartition(":")[2]
    assert bad_server(checked, f"https://127.0.0.1:{port}", "does not speak TLS")


def test_a_server_that_keeps_silent_is_a_matter_of_the_way(
    checked: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkup_server, "TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert bad_server(checked, url, "does not answer within 0 s: is a firewall in between?")


def test_an_address_of_something_else_is_told_as_such(checked: Check, server: FakeServer) -> None:
    assert bad_server(checked, f"{server.url}/other", "answers 404 for /healthz: is that Kanade")


@pytest.mark.parametrize(
    ("date", "words"),
    [
        ("Tue, 01 Dec 2020 00:00:00 GMT", "ahead of the server's: set it"),
        ("Tue, 01 Dec 2099 00:00:00 GMT", "behind the server's: set it"),
    ],
)
def test_a_wrong_clock_is_named_with_its_side(
    checked: Check,
    server: FakeServer,
    monkeypatch: pytest.MonkeyPatch,
    date: str,
    words: str,
) -> None:
    handler = server._server.RequestHandlerClass
    monkeypatch.setattr(handler, "date_time_string", lambda *_: date)

    told = checked()

    assert told.is_bad("clock", words)
    assert told.parts["server"][0] == "ok"


def test_a_pc_that_was_revoked_is_told_so(checked: Check, server: FakeServer) -> None:
    server.valid_credentials.clear()

    told = checked()

    assert told.is_bad("credential", "the server does not know this PC (any more)")


def test_a_token_that_was_cut_is_told_before_it_is_used(
    checked: Check, tmp_path: Path, server: FakeServer
) -> None:
    token = new_token(Purpose.ENROLMENT).text
    empty = tmp_path / "empty"
    empty.mkdir(mode=0o700)

    whole = checked(empty, url=server.url, token=token)
    cut = checked(empty, url=server.url, token=token[:-1])

    assert (whole.good, whole.parts["identity"][0]) == (True, "ok")
    assert cut.is_bad("identity", "the token is not whole: copy it again")
    assert server.enrolments == []


def test_a_full_disk_is_told_before_it_stops_the_work(
    checked: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage("/")._replace(free=63 * 1024 * 1024)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)

    told = checked()

    assert told.is_bad("disk", "63 MiB are free at")


def test_a_folder_that_others_may_enter_is_told_with_the_remedy(
    checked: Check, folder: Path
) -> None:
    folder.chmod(0o750)

    told = checked()

    assert told.is_bad("folder", f"is open to other users: chmod 700 {folder}")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_told(checked: Check, folder: Path) -> None:
    os.chown(folder, 65534, 65534)

    told = checked()

    assert told.is_bad("folder", "belongs to another user: run the agent as its owner")


def test_a_folder_that_cannot_be_written_to_is_told(
    checked: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)

    told = checked()

    assert told.is_bad("folder", "cannot be written to: is the disk mounted read-only?")
