"""What agents' addresses let in: credentials, bodies and rates; and what lies beside them."""

import gzip
import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone
from rest_framework.exceptions import Throttled

from fleet.agent_api import limits, urls
from fleet.agent_api.bodies import MAX_EXCHANGE
from fleet.agent_api.limits import Allowance
from fleet.models import Agent, AgentPresence, AgentState, new_id
from fleet.operations.tokens import Purpose, kept_hash, new_token
from fleet.operations.tokens_of_staff import make_api_token
from scheduler.public import Actor
from tests.fleet.agent_api.asking import ENROL, EXCHANGE, Pc, give_credential, post
from tests.fleet.make import make_agent

pytestmark = pytest.mark.django_db
ROUTES = [f"/api/agent/v1/{pattern.pattern}" for pattern in urls.urlpatterns]
VERBS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"]


def ask(verb: str, path: str, **headers: str) -> Any:
    return Client().generic(verb, path, b"{}", "application/json", headers=headers)


# --- who -----------------------------------------------------------------------------------


def test_every_address_of_agents_is_known_here() -> None:
    assert ROUTES == [ENROL, EXCHANGE]


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("verb", VERBS)
def test_nobody_gets_in_without_a_credential(path: str, verb: str) -> None:
    response = ask(verb, path)

    wanted = {(ENROL, "POST"): 400, (EXCHANGE, "POST"): 401}
    assert response.status_code == wanted.get((path, verb), 405)
    assert response.status_code != 405 or response.headers["Allow"] == "POST"
    assert "Set-Cookie" not in response.headers


def headers_that_open_nothing() -> dict[str, str]:
    agent = make_agent()
    right = give_credential(agent)
    revoked = make_agent(state=AgentState.REVOKED)
    staff = User.objects.create(username="bob", is_staff=True, is_superuser=True)
    api = make_api_token(staff, actor=Actor("user", "bob"), now=timezone.now())[1]
    return {
        "another secret": f"Bearer {new_token(Purpose.AGENT, agent.uuid_text).text}",
        "no such agent": f"Bearer {new_token(Purpose.AGENT, str(new_id())).text}",
        "revoked": f"Bearer {give_credential(revoked)}",
        "an API token": f"Bearer {api}",
        "another scheme": f"Token {right}",
        "basic": f"Basic {right}",
        "twice": f"Bearer {right}, Bearer {right}",
        "padded": f"Bearer  {right}",
        "in capitals": f"Bearer {right.upper()}",
        "bare": right,
        "empty": "Bearer ",
        "not ASCII": "Bearer kag1_é",
        "endless": "Bearer " + "a" * 100_000,
    }


def test_whoever_is_no_agent_is_answered_alike_and_leaves_no_trace() -> None:
    cases = headers_that_open_nothing()
    before = list(AgentPresence.objects.values())

    told = {}
    for case, header in cases.items():
        response = ask("POST", EXCHANGE, Authorization=header)
        document = response.json()
        document.pop("id")
        told[case] = (response.status_code, json.dumps(document))

    assert set(told.values()) == {told["revoked"]}
    assert told["revoked"][0] == 401
    assert list(AgentPresence.objects.values()) == before


def test_a_session_of_staff_opens_nothing_here() -> None:
    staff = User.objects.create(username="bob", is_staff=True, is_superuser=True)
    client = Client()
    client.force_login(staff)

    response = client.post(EXCHANGE, b"{}", content_type="application/json")

    assert response.status_code == 401


def test_the_scheme_is_read_whatever_its_case() -> None:
    pc = Pc()
    data = json.dumps(pc.says()).encode()

    response = Client().post(
        EXCHANGE,
        data,
        content_type="application/json",
        headers={"Authorization": f"bEARER {pc.credential}"},
    )

    assert response.status_code == 200


def paths(patterns: list[Any], before: str = "/") -> list[str]:
    found = []
    for pattern in patterns:
        route = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            found += paths(pattern.url_patterns, route)
        elif isinstance(pattern, URLPattern) and "<" not in route and "(" not in route:
            found.append(route.replace("^", "").replace("$", ""))
    return found


OPEN_TO_ALL = {"/", "/healthz", "/readyz", "/admin/login/", "/admin/jsi18n/", "/admin/logout/"}


def is_closed(response: Any) -> bool:
    to_login = response.headers.get("Location", "").startswith("/admin/login/")
    return response.status_code in {401, 403, 404, 405} or to_login


def test_an_agents_credential_opens_nothing_outside_its_own_addresses() -> None:
    credential = give_credential(make_agent())
    elsewhere = [path for path in paths(get_resolver().url_patterns) if "/agent/v1/" not in path]

    opened = [
        path
        for path in elsewhere
        if path not in OPEN_TO_ALL
        and not is_closed(ask("GET", path, Authorization=f"Bearer {credential}"))
    ]

    assert len(elsewhere) > 20
    assert opened == []


def test_an_agents_credential_is_no_login_of_the_admin() -> None:
    credential = give_credential(make_agent())

    response = ask("GET", "/admin/", Authorization=f"Bearer {credential}")

    assert (response.status_code, response.headers["Location"].split("?")[0]) == (
        302,
        "/admin/login/",
    )


# --- what ----------------------------------------------------------------------------------


def send(data: bytes, content_type: str = "application/json", **headers: str) -> Any:
    pc = Pc()
    headers["Authorization"] = f"Bearer {pc.credential}"
    return Client().post(EXCHANGE, data, content_type=content_type, headers=headers)


SOUND = b'{"protocol":1,"epoch":1,"seq":1,"boot_id":"b","fingerprint":"%s"}' % (b"f" * 64)


def test_the_sound_message_passes() -> None:
    assert send(SOUND).status_code == 200


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b" ", id="empty"),
        pytest.param(b"[" * 100_000, id="deep"),
        pytest.param(b'{"a":' * 100_000, id="deep objects"),
        pytest.param(SOUND[:-1], id="cut"),
        pytest.param(SOUND + b"x", id="more"),
        pytest.param(SOUND.replace(b'"seq":1', b'"seq":1,"seq":2'), id="a key twice"),
        pytest.param(SOUND.replace(b'"seq":1', b'"seq":NaN'), id="NaN"),
        pytest.param(SOUND.replace(b'"seq":1', b'"seq":1e400'), id="infinite"),
        pytest.param(SOUND.replace(b'"seq":1', b'"seq":' + b"9" * 5_000), id="a long number"),
        pytest.param(SOUND.decode().encode("utf-16"), id="utf-16"),
        pytest.param(b"\xef\xbb\xbf" + SOUND, id="byte order mark"),
        pytest.param(b"\xff\xfe", id="no text"),
        pytest.param(b'{"a":[' + b"0," * 600_000 + b"0]}", id="many values"),
    ],
)
def test_what_is_no_sound_json_is_the_senders_mistake(data: bytes) -> None:
    response = send(data)

    assert response.status_code == 400
    assert response.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"protocol": 2}, "protocol"),
        ({"protocol": []}, "protocol"),
        ({"protocol": "1"}, "protocol"),
        ({"epoch": -1}, "epoch"),
        ({"epoch": "1"}, "epoch"),
        ({"seq": None}, "seq"),
        ({"seq": 1.5}, "seq"),
        ({"seq": True}, "seq"),
        ({"boot_id": "x" * 101}, "boot_id"),
        ({"boot_id": "\0"}, "boot_id"),
        ({"fingerprint": "x" * 65}, "fingerprint"),
        ({"fingerprint": 5}, "fingerprint"),
        ({"results": {}}, "results"),
        ({"holding": "x"}, "holding"),
        ({"extra": 1}, "extra"),
        ({"agent_id": 1}, "agent_id"),
    ],
)
def test_a_mistake_of_the_frame_is_named(change: dict[str, object], field: str) -> None:
    response = send(json.dumps(json.loads(SOUND) | change).encode())

    assert response.status_code == 400
    assert [error["field"] for error in response.json()["errors"]] == [field]
    assert AgentPresence.objects.get().seq == 0


@pytest.mark.parametrize("missing", ["protocol", "epoch", "seq", "boot_id", "fingerprint"])
def test_a_missing_part_of_the_frame_is_named(missing: str) -> None:
    message = json.loads(SOUND)
    del message[missing]

    response = send(json.dumps(message).encode())

    assert response.json()["errors"] == [{"field": missing, "message": "is missing"}]


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json; charset=utf-7",
        "application/json; charset=utf-16",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/xml",
    ],
)
def test_another_type_or_charset_is_not_taken(content_type: str) -> None:
    assert send(SOUND, content_type).status_code == 415


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "identity, gzip"])
def test_nothing_compressed_is_taken(encoding: str) -> None:
    response = send(gzip.compress(SOUND), **{"Content-Encoding": encoding})

    assert response.status_code == 415


@pytest.mark.parametrize(("more", "status"), [(0, 200), (1, 413)])
def test_four_mebibytes_are_taken_and_not_a_byte_more(more: int, status: int) -> None:
    filler = MAX_EXCHANGE - len(SOUND) - len(b',"holding":[""]') + more
    data = SOUND[:-1] + b',"holding":["' + b"x" * filler + b'"]}'
    assert len(data) == 4 * 1024 * 1024 + more

    assert send(data).status_code == status


# --- how often -----------------------------------------------------------------------------


def test_an_agent_may_ask_three_hundred_times_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "AGENTS", Allowance(3, lambda: 90.0))
    flood, other = Pc(), Pc()

    statuses = [flood.sends().status_code for _ in range(5)]
    seq = AgentPresence.objects.get(pk=flood.agent.pk).seq
    refused = flood.sends()

    assert limits.UNITS_PER_MINUTE == 300
    assert statuses == [200, 200, 200, 429, 429]
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "30")
    assert seq == 3
    assert other.sends().status_code == 200


def spent(allowance: Allowance, size: int = 0) -> float | None:
    """None where a message fits, else the seconds to wait."""
    try:
        allowance.spend("pc", size)
    except Throttled as refusal:
        return float(getattr(refusal, "wait", 0.0))
    return None


def test_large_messages_use_the_allowance_up_faster() -> None:
    allowance = Allowance(300, lambda: 0.0)

    whole = [spent(allowance, 4 * 1024 * 1024) for _ in range(18)]

    assert whole == [None] * 17 + [60]


def test_the_allowance_is_new_with_the_next_minute() -> None:
    now = [57.0]
    allowance = Allowance(1, lambda: now[0])
    assert [spent(allowance), spent(allowance)] == [None, 3]

    now[0] = 60.0

    assert spent(allowance) is None


def test_the_first_message_of_a_minute_always_fits() -> None:
    assert spent(Allowance(3, lambda: 0.0), 10**9) is None


def test_strangers_are_limited_by_their_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ADDRESSES", Allowance(2, lambda: 0.0))

    assert [post(ENROL, {}).status_code for _ in range(3)] == [400, 400, 429]


def test_a_stranger_does_not_use_up_an_agents_allowance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "AGENTS", Allowance(1, lambda: 0.0))
    pc = Pc()
    wrong = new_token(Purpose.AGENT, pc.agent.uuid_text).text
    for _ in range(3):
        assert post(EXCHANGE, pc.says(), credential=wrong).status_code == 401

    assert pc.sends().status_code == 200


def test_the_kept_hash_is_no_credential() -> None:
    agent = make_agent()
    token = new_token(Purpose.AGENT, agent.uuid_text)
    Agent.objects.filter(pk=agent.pk).update(credential_hash=kept_hash(token))
    agent.refresh_from_db()

    response = ask("POST", EXCHANGE, Authorization=f"Bearer {agent.credential_hash}")

    assert response.status_code == 401
