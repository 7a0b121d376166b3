"""The figures are for the collector alone, and tell the fleet and the queue."""

from typing import Any

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from fleet.models import AgentState, Freeze
from fleet.rules.command_states import CommandState
from tests.fleet.make import make_agent, make_command, make_execution, make_schedule

TOKEN = "collector-0123456789-abcdefghijklmnopqrstuvwxyz"
AS_COLLECTOR = {"authorization": f"Bearer {TOKEN}"}

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _token(settings: Any) -> None:
    settings.KANADE_METRICS_TOKEN = TOKEN


def told(client: Client) -> dict[str, float]:
    """Every figure under its name and label."""
    answer = client.get("/metrics", headers=AS_COLLECTOR)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain")
    return {
        ":".join([sample.name, *sample.labels.values()]): sample.value
        for family in text_string_to_metric_families(answer.content.decode())
        for sample in family.samples
    }


def test_without_a_token_of_its_own_there_is_no_page(client: Client, settings: Any) -> None:
    settings.KANADE_METRICS_TOKEN = ""

    assert client.get("/metrics").status_code == 404
    assert client.get("/metrics", headers={"authorization": "Bearer "}).status_code == 404


@pytest.mark.parametrize("given", ["", "Bearer", f"Bearer {TOKEN}x", TOKEN, f"bearer {TOKEN}", "é"])
def test_anybody_else_is_refused(client: Client, given: str) -> None:
    answer = client.get("/metrics", headers={"authorization": given})

    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert b"kanade_" not in answer.content


def test_an_empty_fleet_has_every_figure(client: Client) -> None:
    found = told(client)

    assert found["kanade_agents:active"] == 0
    assert found["kanade_commands_open:queued"] == 0
    assert found["kanade_frozen"] == 0
    assert found["kanade_runners_alive"] == 0
    assert found["kanade_queue:down"] == 1


def test_what_is_there_is_counted(client: Client) -> None:
    make_agent(state=AgentState.REVOKED)
    make_command(execution=make_execution(), state=CommandState.STARTED)
    make_schedule()
    make_schedule(enabled=False)
    Freeze.objects.filter(pk=1).update(is_set=True)

    found = told(client)

    assert (found["kanade_agents:active"], found["kanade_agents:revoked"]) == (1, 1)
    assert found["kanade_commands_open:started"] == 1
    assert found["kanade_executions_open:live"] == 1
    assert found["kanade_schedules_enabled"] == 1
    assert (found["kanade_frozen"], found["kanade_freeze_unreadable"]) == (1, 0)


def test_an_unreadable_freeze_is_told(client: Client) -> None:
    Freeze.objects.all().delete()

    found = told(client)

    assert (found["kanade_frozen"], found["kanade_freeze_unreadable"]) == (1, 1)


def test_figures_are_only_read(client: Client) -> None:
    assert client.post("/metrics", headers=AS_COLLECTOR).status_code == 405
