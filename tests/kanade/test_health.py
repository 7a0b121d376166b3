"""Liveness touches nothing; readiness names its parts and fails on the hard ones alone."""

from typing import Any
from unittest import mock

import pytest
from django.db import OperationalError, connection
from django.test import Client

from fleet.flow.signing import server_signer
from fleet.models import ServerIdentity
from kanade import health
from kanade.health import Verdict


def test_the_liveness_answer_needs_no_database(client: Client) -> None:
    # Outside of django_db every query is an error.
    answer = client.get("/healthz")

    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@pytest.mark.django_db
def test_a_migrated_database_is_ready(client: Client) -> None:
    answer = client.get("/readyz")

    assert answer.status_code == 200
    parts = answer.json()["parts"]
    assert (parts["database"], parts["migrations"], parts["keys"]) == ("ok", "ok", "ok")


@pytest.mark.django_db
def test_a_database_that_does_not_answer_is_not_ready(client: Client) -> None:
    with mock.patch.object(connection, "cursor", autospec=True, side_effect=OperationalError):
        answer = client.get("/readyz")

    assert answer.status_code == 503
    assert answer.json()["status"] == "failed"
    assert answer.json()["parts"]["database"] == "failed"
    behind = {answer.json()["parts"][name] for name in ("migrations", "keys", "runner")}
    assert behind == {"unknown"}


@pytest.mark.django_db
def test_a_migration_that_is_not_applied_is_not_ready(client: Client) -> None:
    ahead = health._migrations_of_this_release() | {("fleet", "9999_ahead")}
    with mock.patch.object(
        health, "_migrations_of_this_release", autospec=True, return_value=ahead
    ):
        answer = client.get("/readyz")

    assert (answer.status_code, answer.json()["parts"]["migrations"]) == (503, "failed")


@pytest.mark.django_db
def test_a_silent_runner_degrades_the_service_and_leaves_it_in_the_balancer(
    client: Client,
) -> None:
    answer = client.get("/readyz")

    assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
    assert answer.json()["parts"]["runner"] == "degraded"


@pytest.mark.django_db
def test_a_server_key_that_does_not_open_is_not_ready(client: Client, settings: Any) -> None:
    server_signer()
    settings.KANADE_TOKEN_PEPPER = "another-pepper-0123456789-abcdefghijklmnopqrstuvwxyz"

    answer = client.get("/readyz")

    assert (answer.status_code, answer.json()["parts"]["keys"]) == (503, "failed")
    assert "pepper" not in answer.content.decode().lower()


@pytest.mark.django_db
def test_asking_makes_no_key(client: Client) -> None:
    client.get("/readyz")

    assert ServerIdentity.objects.count() == 0


@pytest.mark.parametrize(
    ("verdict", "status"),
    [(Verdict.OK, 200), (Verdict.DEGRADED, 200), (Verdict.FAILED, 503)],
)
def test_only_a_failed_part_takes_the_service_out_of_the_balancer(
    verdict: Verdict, status: int
) -> None:
    assert health.status_of({"database": Verdict.OK, "runner": verdict}) == status


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_health_is_only_read(client: Client, path: str) -> None:
    assert client.post(path).status_code == 405
