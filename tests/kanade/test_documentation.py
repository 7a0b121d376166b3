"""The API's page is for signed-in staff and needs nothing that the CSP forbids."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff(client: Client) -> Client:
    client.force_login(User.objects.create_user("iris", is_staff=True))
    return client


def test_nobody_reads_the_schema_without_signing_in(client: Client) -> None:
    assert client.get("/api/schema/").status_code == 401


def test_somebody_who_is_not_staff_reads_no_schema(client: Client) -> None:
    client.force_login(User.objects.create_user("guest"))

    assert client.get("/api/schema/").status_code == 403


def test_the_page_sends_people_to_the_login(client: Client) -> None:
    answer = client.get("/api/docs/")

    assert (answer.status_code, answer.url) == (302, "/admin/login/?next=/api/docs/")  # type: ignore[attr-defined]  # the redirect's own


def test_staff_read_the_schema(staff: Client) -> None:
    answer = staff.get("/api/schema/?format=json")

    assert answer.status_code == 200
    assert answer.json()["openapi"].startswith("3.")


def test_the_page_has_no_inline_script_style_or_foreign_address(staff: Client) -> None:
    page = staff.get("/api/docs/").content.decode()

    assert re.findall(r"<script(?![^>]*\bsrc=)", page) == []
    assert "<style" not in page
    assert re.findall(r"\son\w+=|\sstyle=", page) == []
    assert re.findall(r'(?:src|href)="(?!/)', page) == []


def test_the_start_script_is_an_answer_of_its_own(staff: Client) -> None:
    answer = staff.get("/api/docs/?script=")

    assert answer.headers["Content-Type"] == "application/javascript"
    assert b"SwaggerUIBundle" in answer.content
