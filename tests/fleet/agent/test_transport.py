"""HTTP to the server: where it may go, what is taken back, and what an answer may not do."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.agent.address import AddressError, proxy_for, read_address
from fleet.agent.transport import MAX_BYTES, Transport, UnreachableError
from tests.fleet.agent.server import FakeServer, Response
from tests.fleet.agent.tls import secure_server

EXCHANGE = "/api/agent/v1/exchange"
BODY = b'{"epoch":null,"results":[],"started":[],"output":[],"holding":[]}'


@pytest.fixture
def server() -> Iterator[FakeServer]:
    made = FakeServer()
    yield made
    made.close()


@pytest.fixture
def transport(server: FakeServer) -> Iterator[Transport]:
    made = Transport(read_address(server.url))
    yield made
    made.close()


@pytest.mark.parametrize(
    "url",
    [
        "https://kanade.example.org",
        "https://kanade.example.org:8443/kanade/",
        "http://127.0.0.1:8000",
        "http://127.8.9.1",
        "http://localhost:8000",
        "http://[::1]:8000",
    ],
)
def test_an_address_that_is_encrypted_or_of_this_machine_is_taken(url: str) -> None:
    assert read_address(url).url == url.rstrip("/")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://kanade.example.org", "not encrypted"),
        ("http://10.0.0.1", "not encrypted"),
        ("http://127.0.0.1.example.org", "not encrypted"),
        ("http://localhost.example.org", "not encrypted"),
        ("kanade.example.org", "no address"),
        ("ftp://kanade.example.org", "no address"),
        ("file:///etc/passwd", "no address"),
        ("https://", "no address"),
        ("https://host:port", "no address"),
        ("https://user:secret@kanade.example.org", "no user"),
        ("https://kanade.example.org/?a=1", "no user, query"),
        ("https://kanade.example.org/#a", "no user, query"),
    ],
)
def test_any_other_address_is_refused(url: str, words: str) -> None:
    with pytest.raises(AddressError, match=words):
        read_address(url)


def test_the_path_of_an_address_comes_before_the_api() -> None:
    server = read_address("https://kanade.example.org/kanade/")
    assert (server.host, server.port, server.path) == ("kanade.example.org", 443, "/kanade")


PROXIES: list[tuple[dict[str, str], str, str | None]] = [
    ({}, "https://kanade.example.org", None),
    ({"https_proxy": "http://proxy:3128"}, "https://kanade.example.org", "proxy"),
    ({"HTTPS_PROXY": "http://proxy:3128"}, "https://kanade.example.org", "proxy"),
    ({"https_proxy": "proxy:3128"}, "https://kanade.example.org", "proxy"),
    ({"all_proxy": "http://proxy:3128"}, "https://kanade.example.org", "proxy"),
    ({"http_proxy": "http://proxy:3128"}, "https://kanade.example.org", None),
    ({"https_proxy": "http://proxy:3128"}, "http://127.0.0.1:8000", None),
    ({"https_proxy": "http://proxy:3128"}, "https://127.0.0.1:8000", None),
    (
        {"https_proxy": "http://proxy:3128", "no_proxy": "example.org"},
        "https://kanade.example.org",
        None,
    ),
    (
        {"https_proxy": "http://proxy:3128", "no_proxy": "other.org"},
        "https://kanade.example.org",
        "proxy",
    ),
]


@pytest.mark.parametrize(("environment", "url", "host"), PROXIES)
def test_the_proxy_comes_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], url: str, host: str | None
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = proxy_for(read_address(url))
    assert (found.hostname if found else None) == host


def test_a_proxy_of_another_kind_is_refused_without_telling_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("https_proxy", "socks5://user:secret@proxy:1080")
    with pytest.raises(AddressError) as caught:
        proxy_for(read_address("https://kanade.example.org"))
    assert "secret" not in str(caught.value)


def test_a_connection_is_kept_and_asked_anew_when_the_server_had_closed_it(
    server: FakeServer, transport: Transport
) -> None:
    assert transport.request("GET", "/healthz").status == 200
    kept = transport._connection
    assert transport.request("GET", "/healthz").status == 200
    assert transport._connection is kept
    assert kept is not None
    assert kept.sock is not None
    kept.sock.shutdown(2)
    assert transport.request("GET", "/healthz").status == 200


def test_a_server_that_is_not_there_is_unreachable() -> None:
    transport = Transport(read_address("http://127.0.0.1:9"))
    with pytest.raises(UnreachableError, match="Connection refused"):
        transport.request("GET", "/healthz")


def test_the_credential_is_a_header_and_nothing_else(
    server: FakeServer, transport: Transport
) -> None:
    transport.request("POST", EXCHANGE, body=BODY, credential="kag1_x")
    assert server.credentials == ["kag1_x"]


def test_a_redirect_is_not_followed(server: FakeServer, transport: Transport) -> None:
    server.once(Response(307, headers={"Location": "http://127.0.0.1:9/steal"}))
    assert transport.request("POST", EXCHANGE, body=BODY).status == 307


def test_an_answer_over_the_limit_is_refused(server: FakeServer, transport: Transport) -> None:
    server.once(Response(200, b" " * (MAX_BYTES + 1)))
    with pytest.raises(UnreachableError, match="more than 4194304 bytes"):
        transport.request("POST", EXCHANGE, body=BODY)
    server.once(Response(200, b" " * MAX_BYTES))
    assert len(transport.request("POST", EXCHANGE, body=BODY).body) == MAX_BYTES


def test_a_compressed_answer_is_refused(server: FakeServer, transport: Transport) -> None:
    bomb = gzip.compress(b"\0" * 10_000_000)
    server.once(Response(200, bomb, {"Content-Encoding": "gzip"}))
    with pytest.raises(UnreachableError, match="compressed"):
        transport.request("POST", EXCHANGE, body=BODY)


def test_a_short_answer_is_unreachable(server: FakeServer, transport: Transport) -> None:
    server.once(Response(200, b"{}", {"Content-Length": "100", "Connection": "close"}))
    with pytest.raises(UnreachableError):
        transport.request("POST", EXCHANGE, body=BODY, timeout_s=1)


RETRY_AFTER: list[tuple[dict[str, str], float | None]] = [
    ({"Retry-After": "7"}, 7.0),
    ({"Retry-After": "0"}, 0.0),
    ({"Retry-After": "999999"}, 3600.0),
    ({"Retry-After": "-1"}, None),
    ({"Retry-After": "soon"}, None),
    ({}, None),
]


@pytest.mark.parametrize(("headers", "seconds"), RETRY_AFTER)
def test_retry_after_is_read_within_bounds(
    server: FakeServer,
    transport: Transport,
    headers: dict[str, str],
    seconds: float | None,
) -> None:
    server.once(Response(503, headers=headers))
    assert transport.request("POST", EXCHANGE, body=BODY).retry_after_s == seconds


def test_a_certificate_of_an_unknown_authority_is_refused(tmp_path: Path) -> None:
    with secure_server(tmp_path) as (url, authority):
        with pytest.raises(UnreachableError, match="CERTIFICATE_VERIFY_FAILED"):
            Transport(read_address(url)).request("GET", "/healthz")
        transport = Transport(read_address(url), ca=authority)
        assert transport.request("GET", "/healthz").status == 200
        transport.close()


def test_a_certificate_for_another_host_is_refused(tmp_path: Path) -> None:
    with secure_server(tmp_path, name="elsewhere") as (url, authority):
        transport = Transport(read_address(url), ca=authority)
        with pytest.raises(UnreachableError, match="CERTIFICATE_VERIFY_FAILED"):
            transport.request("GET", "/healthz")


def test_a_file_without_an_authority_is_named(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("nothing")
    with pytest.raises(AddressError, match=r"ca\.pem holds no certificate authority"):
        Transport(read_address("https://kanade.example.org"), ca=tmp_path / "ca.pem")
