"""A PC enrols."""

import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from fleet.models import Agent, AgentPresence, AgentState, EnrolmentToken, Membership
from fleet.operations import credentials
from fleet.operations.enrolment import Enrolled, EnrolmentRefusedError, Newcomer, enrol
from fleet.operations.enrolment_tokens import make_enrolment_token, revoke_enrolment_token
from fleet.operations.tokens import Purpose, new_token
from fleet.rules.facts import Facts
from fleet.rules.refusals import Invalid
from scheduler.models import AuditEntry
from scheduler.public import Actor
from tests.fleet.make import NOW, make_agent, make_group

pytestmark = pytest.mark.django_db
ALICE = Actor("user", "alice")
LATER = NOW + timedelta(minutes=5)


def token(**options: Any) -> str:
    return make_enrolment_token(actor=ALICE, now=NOW, **options)[1]


def newcomer(text: str, **fields: Any) -> Newcomer:
    values: dict[str, Any] = {"name": "PC-1", "nonce": "n" * 43, "fingerprint": "f" * 64}
    return Newcomer(text, **(values | {"facts": Facts()} | fields))


def presents(enrolled: Enrolled, agent: Agent) -> bool:
    credential = credentials.credential_in(enrolled.credential)
    assert credential is not None
    agent.refresh_from_db()
    return credentials.holds(agent, credential, now=LATER)


def test_a_token_becomes_an_agent_with_a_credential_of_its_own() -> None:
    group = make_group("lab")
    facts = Facts({"os": "Linux"}, "Europe/Budapest")

    enrolled = enrol(newcomer(token(group=group), facts=facts), now=LATER)

    agent = Agent.objects.get()
    assert (agent.name, agent.state, agent.zone) == ("PC-1", AgentState.ACTIVE, "Europe/Budapest")
    assert (agent.facts, agent.fingerprint, agent.enrolled_at) == ({"os": "Linux"}, "f" * 64, LATER)
    assert enrolled.credential.startswith(f"kag1_{agent.uuid}_")
    assert presents(enrolled, agent)
    assert Membership.objects.get().group == group
    assert AgentPresence.objects.get().last_seen_at is None


def test_neither_token_nor_credential_is_in_the_database() -> None:
    text = token()

    enrolled = enrol(newcomer(text), now=LATER)

    agent, row = Agent.objects.get(), EnrolmentToken.objects.get()
    stored = f"{vars(agent)}{vars(row)}{list(AuditEntry.objects.values())}"
    assert text.split("_")[2] not in stored
    assert enrolled.credential.split("_", 2)[2][:43] not in stored
    assert "n" * 43 not in stored


def test_enrolling_is_audited_with_the_token_it_used() -> None:
    enrol(newcomer(token(), address="10.0.0.7"), now=LATER)

    entry = AuditEntry.objects.get(action="enrol")
    assert (entry.actor_kind, entry.actor_name, entry.address) == ("agent", "PC-1", "10.0.0.7")
    assert entry.after == {
        "name": "PC-1",
        "state": "active",
        "token": EnrolmentToken.objects.get().public_id,
        "group": None,
    }


def spoilt(kind: str) -> str:
    row, text = make_enrolment_token(actor=ALICE, now=NOW)
    match kind:
        case "expired":
            EnrolmentToken.objects.update(expires_at=LATER)
        case "used":
            EnrolmentToken.objects.update(used=1)
        case "revoked":
            revoke_enrolment_token(row, actor=ALICE, now=NOW)
        case "unknown":
            text = new_token(Purpose.ENROLMENT).text
        case "another secret":
            text = new_token(Purpose.ENROLMENT, row.public_id).text
        case "an API token":
            text = new_token(Purpose.API, row.public_id).text
        case "damaged":
            text = text[:-1]
    return text


@pytest.mark.parametrize(
    "kind",
    ["expired", "used", "revoked", "unknown", "another secret", "an API token", "damaged"],
)
def test_a_token_that_opens_nothing_is_refused_and_changes_nothing(kind: str) -> None:
    text = spoilt(kind)
    used = EnrolmentToken.objects.get().used

    with pytest.raises(EnrolmentRefusedError):
        enrol(newcomer(text), now=LATER)

    assert Agent.objects.count() == 0
    assert EnrolmentToken.objects.get().used == used


def test_a_lost_reply_is_asked_for_again_and_counts_as_no_further_use() -> None:
    text = token()
    first = enrol(newcomer(text), now=LATER)

    second = enrol(newcomer(text), now=LATER)

    agent = Agent.objects.get()
    assert second.agent == first.agent == agent
    assert EnrolmentToken.objects.get().used == 1
    assert second.credential != first.credential
    assert presents(first, agent)
    assert presents(second, agent)


def test_once_the_second_credential_is_used_the_first_is_void() -> None:
    text = token()
    first, second = (enrol(newcomer(text), now=LATER) for _ in range(2))
    agent = Agent.objects.get()

    assert presents(second, agent)
    assert not presents(first, agent)


def test_another_nonce_does_not_get_the_agent_of_a_used_token() -> None:
    text = token()
    first = enrol(newcomer(text), now=LATER)

    with pytest.raises(EnrolmentRefusedError):
        enrol(newcomer(text, nonce="m" * 43), now=LATER)

    assert Agent.objects.get() == first.agent
    assert Agent.objects.get().next_credential_hash == ""


def test_an_agent_that_has_been_heard_is_not_given_away_again() -> None:
    text = token()
    enrol(newcomer(text), now=LATER)
    AgentPresence.objects.update(last_seen_at=LATER)

    with pytest.raises(EnrolmentRefusedError):
        enrol(newcomer(text), now=LATER)


def test_a_token_for_several_makes_agents_that_wait_to_be_accepted() -> None:
    text = token(uses=3)

    enrol(newcomer(text, nonce="a" * 43), now=LATER)
    enrol(newcomer(text, nonce="b" * 43, name="PC-2"), now=LATER)

    assert set(Agent.objects.values_list("state", flat=True)) == {AgentState.PENDING}
    assert EnrolmentToken.objects.get().used == 2


def test_a_taken_name_gets_a_number_and_the_reported_one_is_kept() -> None:
    make_agent("pc-1")
    make_agent("PC-1-2")

    enrolled = enrol(newcomer(token()), now=LATER)

    assert (enrolled.agent.name, enrolled.agent.reported_name) == ("PC-1-3", "PC-1")


def test_a_revoked_pc_gives_its_name_up() -> None:
    old = make_agent("pc-1", state=AgentState.REVOKED)

    enrolled = enrol(newcomer(token()), now=LATER)

    old.refresh_from_db()
    assert enrolled.agent.name == "PC-1"
    assert old.name == f"pc-1~{old.uuid_text[-12:]}"


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"uses": 0}, "uses"),
        ({"uses": 5_001}, "uses"),
        ({"ttl": timedelta(seconds=59)}, "ttl"),
        ({"ttl": timedelta(days=7, seconds=1)}, "ttl"),
    ],
)
def test_a_token_outside_the_bounds_is_not_made(options: Any, field: str) -> None:
    with pytest.raises(Invalid) as refusal:
        token(**options)

    assert refusal.value.field == field
    assert EnrolmentToken.objects.count() == 0
    assert AuditEntry.objects.count() == 0


def test_a_token_is_revoked_once_and_audited_once() -> None:
    row, _ = make_enrolment_token(actor=ALICE, now=NOW)

    revoke_enrolment_token(row, actor=ALICE, now=LATER)
    revoke_enrolment_token(stale_copy(row), actor=ALICE, now=LATER + timedelta(minutes=1))

    row.refresh_from_db()
    assert row.revoked_at == LATER
    assert AuditEntry.objects.filter(action="revoke").count() == 1


def stale_copy(row: EnrolmentToken) -> EnrolmentToken:
    return EnrolmentToken(pk=row.pk, public_id=row.public_id)


@pytest.mark.concurrency
@pytest.mark.django_db(transaction=True)
def test_of_fifty_pcs_with_one_token_at_once_one_gets_in() -> None:
    text = token()
    barrier = threading.Barrier(50)
    outcomes: list[str] = []

    def attempt(number: int) -> None:
        one = replace(newcomer(text), nonce=f"{number:043d}", name=f"PC-{number}")
        barrier.wait()
        try:
            enrol(one, now=LATER)
            outcomes.append("in")
        except EnrolmentRefusedError:
            outcomes.append("out")
        finally:
            connection.close()

    threads = [threading.Thread(target=attempt, args=[number]) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(outcomes) == ["in"] + ["out"] * 49
    assert Agent.objects.count() == 1
    assert EnrolmentToken.objects.get().used == 1


@pytest.mark.concurrency
@pytest.mark.django_db(transaction=True)
def test_the_same_pc_asking_ten_times_at_once_is_one_agent() -> None:
    text = token(uses=20)
    barrier = threading.Barrier(10)

    def attempt() -> None:
        barrier.wait()
        try:
            enrol(newcomer(text), now=LATER)
        finally:
            connection.close()

    threads = [threading.Thread(target=attempt) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert Agent.objects.count() == 1
    assert EnrolmentToken.objects.get().used == 1
