"""`POST /api/agent/v1/enrol`."""

from datetime import timedelta
from threading import BoundedSemaphore
from typing import Any

import pytest
from django.utils import timezone

from fleet.agent_api import limits
from fleet.agent_api.limits import Allowance
from fleet.flow.signing import server_signer
from fleet.models import Agent, EnrolmentToken
from fleet.operations.enrolment_tokens import make_enrolment_token, revoke_enrolment_token
from fleet.operations.tokens import Purpose, new_token
from scheduler.public import Actor
from tests.fleet.agent_api.asking import ENROL, Pc, post

pytestmark = pytest.mark.django_db
ALICE = Actor("user", "alice")


def token(**options: Any) -> str:
    return make_enrolment_token(actor=ALICE, now=timezone.now(), **options)[1]


def body(text: str = "", **fields: object) -> dict[str, object]:
    return {
        "protocol": 1,
        "token": text or token(),
        "name": "pc-1",
        "nonce": "n" * 43,
        "fingerprint": "f" * 64,
        "facts": {"zone": "Europe/Budapest", "shells": ["sh"]},
    } | fields


def test_a_pc_enrols_and_exchanges_with_what_it_got() -> None:
    response = post(ENROL, body())

    told = response.json()
    signer = server_signer()
    agent = Agent.objects.get()
    assert response.status_code == 201
    assert told.keys() == {
        "agent_id",
        "credential",
        "server_id",
        "server_key",
        "server_epoch",
        "server_time",
        "state",
    }
    assert (told["agent_id"], told["state"]) == (str(agent.uuid), "active")
    assert (told["server_id"], told["server_epoch"]) == (str(signer.server_id), 1)
    assert agent.facts == {"zone": "Europe/Budapest", "shells": ["sh"]}
    pc = Pc(agent, told["credential"], epoch=None)
    assert pc.exchanges()["epoch"] == 1


def test_a_pc_of_a_token_for_several_is_told_that_it_waits() -> None:
    assert post(ENROL, body(token(uses=2))).json()["state"] == "pending"


def test_a_lost_reply_is_answered_with_a_fresh_credential_for_the_same_agent() -> None:
    text = token()

    first, second = (post(ENROL, body(text)).json() for _ in range(2))

    assert first["agent_id"] == second["agent_id"]
    assert first["credential"] != second["credential"]
    assert Agent.objects.count() == 1


def test_every_token_that_opens_nothing_is_answered_alike() -> None:
    now = timezone.now()
    used, expired, revoked = token(), token(), token()
    post(ENROL, body(used))
    row = EnrolmentToken.objects.get(public_id=expired.split("_")[1])
    EnrolmentToken.objects.filter(pk=row.pk).update(expires_at=now - timedelta(seconds=1))
    row = EnrolmentToken.objects.get(public_id=revoked.split("_")[1])
    revoke_enrolment_token(row, actor=ALICE, now=now)
    texts = [used, expired, revoked, new_token(Purpose.ENROLMENT).text, "ken1_x", " ", "é" * 90]

    responses = [post(ENROL, body(text, nonce="m" * 43)) for text in texts]

    told = [response.json() for response in responses]
    ids = {one.pop("id") for one in told}
    assert {response.status_code for response in responses} == {401}
    assert {response.headers["WWW-Authenticate"] for response in responses} == {
        'Bearer realm="kanade agents"'
    }
    assert len(ids) == len(texts)
    assert all(one == told[0] for one in told)
    assert Agent.objects.count() == 1


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"protocol": 2}, "protocol"),
        ({"protocol": True}, "protocol"),
        ({"protocol": []}, "protocol"),
        ({"protocol": None}, "protocol"),
        ({"token": 5}, "token"),
        ({"name": ""}, "name"),
        ({"name": "../etc"}, "name"),
        ({"name": "a" * 64}, "name"),
        ({"name": "pc 1"}, "name"),
        ({"name": "pc\0"}, "name"),
        ({"name": "péce"}, "name"),
        ({"name": "CON"}, "name"),
        ({"name": "nul.txt"}, "name"),
        ({"name": "01a22eee-72f5-754f-bbd9-dd86f4c00d55"}, "name"),
        ({"name": "01a22eee72f5754fbbd9dd86f4c00d55"}, "name"),
        ({"name": ["pc"]}, "name"),
        ({"nonce": "short"}, "nonce"),
        ({"nonce": "n" * 42 + "!"}, "nonce"),
        ({"fingerprint": "F" * 64}, "fingerprint"),
        ({"fingerprint": None}, "fingerprint"),
        ({"uuid": "x"}, "uuid"),
        ({"state": "active"}, "state"),
    ],
)
def test_a_mistake_is_named_at_its_field_and_uses_nothing(
    fields: dict[str, Any], field: str
) -> None:
    response = post(ENROL, body(**fields))

    assert response.status_code == 400
    assert [error["field"] for error in response.json()["errors"]] == [field]
    assert Agent.objects.count() == 0
    assert EnrolmentToken.objects.get().used == 0


def test_odd_facts_are_left_out_and_stop_nothing() -> None:
    facts = {"zone": 5, "os": "x" * 9999, "extra": {"a": 1}, "shells": "sh"}

    # More than eight kilobytes are no enrolment at all.
    assert post(ENROL, body(facts=facts)).status_code == 413
    assert post(ENROL, body(facts=facts | {"os": "x" * 999})).status_code == 201
    assert Agent.objects.get().facts["os"] == "x" * 200


@pytest.mark.parametrize("data", [b"[]", b"null", b"5", b'"x"', b"{}"])
def test_what_is_no_enrolment_is_refused(data: bytes) -> None:
    assert post(ENROL, data).status_code == 400


def test_pcs_that_enrol_do_not_use_their_address_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ADDRESSES", Allowance(2, lambda: 0.0))

    statuses = [post(ENROL, body(name=f"pc-{n}")).status_code for n in range(4)]

    assert statuses == [201] * 4


def test_where_too_many_enrol_at_once_the_next_is_told_to_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "ENROLLING", BoundedSemaphore(1))
    limits.ENROLLING.acquire()

    busy = post(ENROL, body())
    limits.ENROLLING.release()

    assert (busy.status_code, busy.headers["Retry-After"]) == (429, "5")
    assert not Agent.objects.exists()
    assert [post(ENROL, body(name=f"pc-{n}")).status_code for n in (1, 2)] == [201, 201]
