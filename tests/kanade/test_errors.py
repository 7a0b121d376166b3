"""Under /api/ every error is a problem document, also those that no view of ours makes."""

from http import HTTPStatus
from unittest import mock

import pytest
from django.test import Client

from kanade import health
from scheduler.api.problems import MEDIA_TYPE


def test_an_unknown_api_address_is_answered_with_a_problem(client: Client) -> None:
    answer = client.get("/api/v1/nothing-here/")

    assert answer.status_code == 404
    assert answer.headers["Content-Type"] == MEDIA_TYPE
    assert answer.json()["title"] == "Not Found"


def test_an_unknown_page_is_answered_with_a_page(client: Client) -> None:
    answer = client.get("/nothing-here/")

    assert answer.status_code == 404
    assert answer.headers["Content-Type"].startswith("text/html")


def test_a_foreign_host_name_is_a_problem_and_not_echoed(client: Client) -> None:
    answer = client.get("/api/schema", headers={"host": "evil.example"})

    assert answer.status_code == 400
    assert answer.headers["Content-Type"] == MEDIA_TYPE
    assert b"evil" not in answer.content


def test_a_fault_of_the_server_tells_nothing_but_an_id(client: Client) -> None:
    client.raise_request_exception = False
    with mock.patch("rest_framework.views.APIView.initial", side_effect=KeyError("secret")):
        answer = client.get("/api/schema/")

    assert answer.status_code == HTTPStatus.INTERNAL_SERVER_ERROR
    assert answer.headers["Content-Type"] == MEDIA_TYPE
    assert b"secret" not in answer.content
    assert len(answer.json()["id"]) == 32


def test_a_fault_of_a_page_shows_no_internals(client: Client) -> None:
    client.raise_request_exception = False
    with mock.patch.object(health, "readiness", autospec=True, side_effect=KeyError("secret")):
        answer = client.get("/readyz")

    assert answer.status_code == HTTPStatus.INTERNAL_SERVER_ERROR
    assert b"secret" not in answer.content


@pytest.mark.django_db
def test_a_refusal_is_json_whatever_the_view_renders(client: Client) -> None:
    answer = client.get("/api/schema/")

    assert answer.status_code == 401
    assert answer.headers["Content-Type"] == MEDIA_TYPE
    assert answer.json()["status"] == 401
