"""T-07, T-08: every page opens, whatever PCs and people wrote, and keeps the policy."""

import re
from collections import Counter

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from django.urls import reverse

from tests.fleet.admin.conftest import Visit
from tests.fleet.admin.everything import Rows, address_of, fleet_pages, make_everything
from tests.fleet.admin.hostile import GROUPS, PAYLOADS
from tests.fleet.admin.reading import Page, faults

pytestmark = pytest.mark.django_db

# The check of a form is asked by POST alone, and has tests of its own.
PAGES = [(name, route) for name, route in fleet_pages() if name != "fleet_schedule_check"]
READ_ONLY = ("agent", "command", "execution", "freeze", "jobrevision", "result")
CLOSED = {
    *(f"fleet_{model}_add" for model in READ_ONLY),
    *(f"fleet_{model}_delete" for model in (*READ_ONLY, "apitoken", "enrolmenttoken")),
}
# They lead to another page.
AWAY = {"fleet_freeze_change", *(name for name, _ in PAGES if name.endswith("_history"))}
DOWNLOADS = {"fleet_result_download", "fleet_command_download"}
SHOWN = [(name, route) for name, route in PAGES if name not in CLOSED | AWAY | DOWNLOADS]
HOME = ["admin:index", "admin:dashboard"]

Shape = Counter[tuple[str, tuple[str, ...]]]


def rows_with(words: str) -> Rows:
    return make_everything(words, User.objects.get(username="root"))


def addresses(rows: Rows) -> dict[str, str]:
    found = {name: address_of(name, route, rows) for name, route in SHOWN}
    return found | {name: reverse(name) for name in HOME}


def test_every_page_keeps_the_strict_policy_that_it_carries(root: Client) -> None:
    for name, address in addresses(rows_with("plain words")).items():
        answer = root.get(address)

        assert answer.status_code == 200, name
        assert faults(answer.content.decode()) == [], name
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy, name
        assert "unsafe" not in policy, name


def test_rows_of_the_machinery_can_neither_be_made_nor_deleted(root: Client) -> None:
    rows = rows_with("plain words")
    closed = [(name, route) for name, route in PAGES if name in CLOSED]

    for name, route in closed:
        assert root.get(address_of(name, route, rows)).status_code == 403, name
        assert root.post(address_of(name, route, rows), {"post": "yes"}).status_code == 403, name
    assert len(closed) == len(CLOSED)


def shapes(client: Client, rows: Rows) -> dict[str, Shape]:
    found = {}
    for name, address in addresses(rows).items():
        answer = client.get(address)
        assert answer.status_code == 200, name
        found[name] = Page(answer.content.decode()).shape()
    # One element a line of a comparison, and quoted lines break elsewhere.
    del found["fleet_job_overview"]["span", ("class",)]
    return found


PLAIN: dict[str, Shape] = {}


def plain_shapes(client: Client) -> dict[str, Shape]:
    """The shapes of all pages with harmless words in them, seen once."""
    if not PLAIN:
        with transaction.atomic():
            PLAIN.update(shapes(client, rows_with(re.sub(r"\S", "x", GROUPS[0]))))
            transaction.set_rollback(True)
    return PLAIN


@pytest.mark.parametrize("words", GROUPS, ids=range(len(GROUPS)))
def test_hostile_words_add_no_element_and_no_attribute(words: str, root: Client) -> None:
    plain = plain_shapes(root)

    assert shapes(root, rows_with(words)) == plain


def test_the_corpus_is_large() -> None:
    assert len(set(PAYLOADS)) >= 200


POISON = (
    "\ufffd\u0085\u009b31m\x1b[31mred\x1b[0m\x07\u202e\u2066evil\u2069\U0001f9ea\U0010ffff",
    "a\u0300" * 50 + "x" * 5_000,
)


@pytest.mark.parametrize("words", POISON, ids=range(len(POISON)))
def test_poisoned_words_of_pcs_break_no_page(words: str, root: Client) -> None:
    rows = make_everything(words, User.objects.get(username="root"), script="echo hello")

    for name, address in addresses(rows).items():
        assert root.get(address).status_code == 200, name


@pytest.mark.parametrize("role", ["viewer", "operator", "approver", "fleet-admin", "nobody"])
def test_no_role_gets_an_error_from_any_page(role: str, visit: Visit) -> None:
    client = visit(role)
    visit("root")
    rows = make_everything("plain words", User.objects.get(username=role))

    answers = {name: client.get(address) for name, address in addresses(rows).items()}

    assert {name for name, answer in answers.items() if answer.status_code >= 500} == set()
    seen = {name for name, answer in answers.items() if answer.status_code == 200}
    assert ("fleet_agent_changelist" in seen) is (role != "nobody")
