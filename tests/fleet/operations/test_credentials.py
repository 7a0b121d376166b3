"""Agents' credentials and how they are replaced."""

from datetime import datetime, timedelta

import pytest

from fleet.models import Agent
from fleet.operations.credentials import credential_in, holds, offer_credential
from fleet.operations.tokens import Purpose, Token, kept_hash, new_token
from tests.fleet.make import NOW, make_agent

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
DUE = NOW + 30 * DAY


def agent_with_credential() -> tuple[Agent, Token]:
    agent = make_agent()
    credential = new_token(Purpose.AGENT, agent.uuid_text)
    Agent.objects.filter(pk=agent.pk).update(credential_hash=kept_hash(credential))
    agent.refresh_from_db()
    return agent, credential


def offered(agent: Agent, now: datetime = DUE) -> Token:
    text = offer_credential(agent, agent.uuid_text, now=now)
    credential = credential_in(text or "")
    assert credential is not None
    return credential


def works(agent: Agent, credential: Token, now: datetime = DUE) -> bool:
    return holds(Agent.objects.get(pk=agent.pk), credential, now=now)


def test_the_credential_opens_its_agent_and_no_other() -> None:
    agent, credential = agent_with_credential()
    other, _ = agent_with_credential()

    assert works(agent, credential)
    assert not works(other, credential)
    assert not works(agent, new_token(Purpose.AGENT, agent.uuid_text))


@pytest.mark.parametrize(
    ("age", "due"), [(30 * DAY - timedelta(microseconds=1), False), (30 * DAY, True)]
)
def test_a_new_credential_is_offered_after_thirty_days(age: timedelta, due: bool) -> None:
    agent, _ = agent_with_credential()

    assert (offer_credential(agent, agent.uuid_text, now=NOW + age) is not None) is due


def test_the_old_credential_works_until_the_new_one_is_used() -> None:
    agent, old = agent_with_credential()
    new = offered(agent)
    assert works(agent, old)

    assert works(agent, new)

    assert not works(agent, old)
    agent.refresh_from_db()
    assert (agent.next_credential_hash, agent.credential_at) == ("", DUE)


def test_a_second_exchange_at_once_does_not_void_the_offer() -> None:
    agent, _ = agent_with_credential()
    stale = Agent.objects.get(pk=agent.pk)
    new = offered(agent)

    assert offer_credential(stale, stale.uuid_text, now=DUE) is None
    assert works(agent, new)


def test_an_offer_that_is_not_taken_up_for_an_hour_is_replaced() -> None:
    agent, old = agent_with_credential()
    lost = offered(agent)
    agent.refresh_from_db()
    assert offer_credential(agent, agent.uuid_text, now=DUE + timedelta(minutes=59)) is None

    new = offered(agent, DUE + timedelta(hours=1))

    assert works(agent, old)
    assert not works(agent, lost)
    assert works(agent, new)


def test_two_first_uses_of_a_new_credential_at_once_are_both_good() -> None:
    agent, _ = agent_with_credential()
    new = offered(agent)
    mine, theirs = Agent.objects.get(pk=agent.pk), Agent.objects.get(pk=agent.pk)

    assert holds(mine, new, now=DUE)
    assert holds(theirs, new, now=DUE)


def test_a_used_credential_is_not_replaced_by_a_stale_copy() -> None:
    agent, _ = agent_with_credential()
    stale = Agent.objects.get(pk=agent.pk)
    new = offered(agent)
    assert works(agent, new)

    assert offer_credential(stale, stale.uuid_text, now=DUE + timedelta(hours=2)) is None
    assert works(agent, new)
