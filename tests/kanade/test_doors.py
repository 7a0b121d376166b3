"""Who comes in where: T-01 anonymous callers, T-03 PCs, T-13 other sites with a person's cookie."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from fleet.models import Agent
from fleet.operations import tokens
from tests.fleet.make import make_agent
from tests.kanade.routes import METHODS, address, make_rows, routes

pytestmark = pytest.mark.django_db

# Whoever adds an address here says why somebody unknown may use it.
OPEN = {
    "",  # leads to the admin, which asks for a login
    "admin/login/",
    "admin/logout/",  # ends a session, or none
    "healthz",
    "readyz",  # the load balancer's; verdicts alone
    "api/agent/v1/enrol",  # the token is in the body
}
AGENTS = "api/agent/v1"
ROUTES = routes()
SAFE = {"GET", "HEAD", "OPTIONS", "TRACE"}


def is_refused(answer: Any) -> bool:
    """Whether the answer keeps everything: an error of the caller's, or the way to the login."""
    if answer.status_code == 302:
        return str(answer.headers["Location"]).startswith("/admin/login/")
    return answer.status_code in {401, 403, 404, 405}


@contextmanager
def no_writes() -> Iterator[None]:
    """Fail on any statement that changes a table other than the caller's own session."""

    def guard(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        verb = sql.lstrip().split(" ", 1)[0].upper()
        # A form's CSRF token lives in the session.
        changes = verb in {"INSERT", "UPDATE", "DELETE"} and "django_session" not in sql
        assert not changes, sql
        return execute(sql, *rest)

    with connection.execute_wrapper(guard):
        yield


def send(client: Client, method: str, path: str, **headers: str) -> Any:
    body = b"" if method in SAFE else b"{}"
    return client.generic(method, path, body, "application/json" if body else "", headers=headers)


def test_the_open_addresses_are_all_there() -> None:
    assert set(ROUTES) >= OPEN


def sections() -> list[str]:
    """The first words of the routes: each section is one test, so that rows are made once."""
    return sorted({section(route) for route in ROUTES})


def section(route: str) -> str:
    """The part of the site that a route belongs to."""
    return "/".join(route.split("/")[:3])


def of(part: str, *, but: set[str] | None = None) -> list[str]:
    """The routes of a section, without those in `but`."""
    return [route for route in ROUTES if section(route) == part and route not in (but or set())]


@pytest.mark.parametrize("part", sections())
def test_nobody_comes_in_without_signing_in(part: str) -> None:
    make_rows()
    client = Client()

    with no_writes():
        for route in of(part, but=OPEN):
            for method in METHODS:
                answer = send(client, method, address(route))
                assert is_refused(answer), (method, route, answer.status_code)


@pytest.mark.parametrize(
    "headers",
    [
        {"x-http-method-override": "GET"},
        {"x-original-url": "/healthz", "x-rewrite-url": "/healthz"},
        {"x-forwarded-for": "127.0.0.1", "x-forwarded-host": "localhost"},
        {"x-forwarded-user": "admin", "remote-user": "admin"},
        {"authorization": "Basic YWRtaW46YWRtaW4="},
        {"cookie": "kanade=1; sessionid=1; csrftoken=1"},
    ],
    ids=lambda headers: next(iter(headers)),
)
def test_no_header_opens_a_door(headers: dict[str, str]) -> None:
    make_rows()

    for path in ("/admin/", "/api/v1/jobs/", "/api/v1/freeze/", "/metrics", "/api/schema/"):
        assert is_refused(Client().get(path, headers=headers)), path


@pytest.mark.parametrize(
    "path",
    [
        "/admin/..;/fleet/job/",
        "/static/../admin/fleet/job/",
        "/healthz/../api/v1/jobs/",
        "/api/v1/jobs/%2e%2e/jobs/",
        "/API/v1/jobs/",
        "/api//v1/jobs/",
        "/api/v1/jobs/x/;/",
        "/admin/fleet/job/%00/",
        "/readyz/api/v1/jobs/",
    ],
)
def test_no_spelling_of_a_path_opens_a_door(path: str) -> None:
    make_rows()

    assert is_refused(Client().get(path))


@pytest.mark.parametrize("part", [part for part in sections() if part != AGENTS])
def test_a_pcs_credential_opens_nothing_for_people(part: str) -> None:
    make_rows()
    agent = make_agent("spy")
    token = tokens.new_token(tokens.Purpose.AGENT, agent.uuid_text)
    Agent.objects.filter(pk=agent.pk).update(credential_hash=tokens.kept_hash(token))
    bearer = {"authorization": f"Bearer {token.text}"}

    with no_writes():
        for route in of(part, but=OPEN):
            for method in METHODS:
                answer = send(Client(), method, address(route), **bearer)
                assert is_refused(answer), (method, route, answer.status_code)
                assert not answer.cookies


def test_a_persons_session_opens_nothing_for_pcs() -> None:
    make_rows()
    client = Client()
    client.force_login(User.objects.create_superuser("root"))

    for route in of(AGENTS):
        for method in METHODS:
            answer = send(client, method, address(route))
            assert 400 <= answer.status_code < 500, (method, route, answer.status_code)
            assert not answer.cookies


@pytest.mark.parametrize("part", sections())
def test_reading_changes_nothing(part: str) -> None:
    make_rows()
    client = Client()
    client.force_login(User.objects.create_superuser("root"))

    with no_writes():
        for route in of(part):
            for method in ("GET", "HEAD", "OPTIONS"):
                answer = send(client, method, address(route))
                assert answer.status_code < 500, (method, route)


@pytest.mark.parametrize("part", [part for part in sections() if part != AGENTS])
def test_a_strangers_page_changes_nothing_with_a_persons_cookie(part: str) -> None:
    make_rows()
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.create_superuser("root"))

    with no_writes():
        # The home page leads to the admin whatever is sent to it.
        for route in of(part, but={""}):
            for method in sorted(set(METHODS) - SAFE):
                answer = send(client, method, address(route))
                assert answer.status_code in {403, 404, 405}, (method, route, answer.status_code)
