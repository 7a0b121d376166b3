"""Every page of the scheduler: it opens, whatever was stored, keeps the policy, costs the same."""

import re
from collections import Counter

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from scheduler.models import AuditEntry, Run, Task
from scheduler.public import Actor, record_act, request
from tests.fleet.admin.hostile import GROUPS
from tests.fleet.admin.reading import Page, faults
from tests.scheduler.admin.rows import MODELS, NOW, Rows, addresses, make_rows, page
from tests.scheduler.make import make_runner

pytestmark = pytest.mark.django_db

Shape = Counter[tuple[str, tuple[str, ...]]]


def test_every_page_opens_without_inline_scripts_styles_and_handlers(root: Client) -> None:
    for name, address in addresses(make_rows()).items():
        answer = root.get(address)
        assert answer.status_code == 200, name
        assert faults(answer.content.decode()) == [], name


def shapes(client: Client, rows: Rows) -> dict[str, Shape]:
    found = {}
    for name, address in addresses(rows).items():
        answer = client.get(address)
        assert answer.status_code == 200, name
        found[name] = Page(answer.content.decode()).shape()
    return found


@pytest.mark.parametrize("words", GROUPS, ids=range(len(GROUPS)))
def test_hostile_words_add_no_element_and_no_attribute(words: str, root: Client) -> None:
    # Words of the same length, so that nothing but what they say differs.
    with transaction.atomic():
        plain = shapes(root, make_rows(re.sub(r"\S", "x", words)))
        transaction.set_rollback(True)
    assert shapes(root, make_rows(words)) == plain


@pytest.mark.parametrize(
    "words",
    ["\x1b[31mred\x1b[0m\x07", "\u202e\u2066evil\u2069", "a\u0300" * 50, "x" * 9_000, "\U0010ffff"],
)
def test_odd_words_break_no_page(words: str, root: Client) -> None:
    for name, address in addresses(make_rows(words)).items():
        assert root.get(address).status_code == 200, name


def test_rows_can_neither_be_made_nor_edited_nor_deleted(root: Client) -> None:
    rows = make_rows()
    before = Task.objects.filter(pk=rows.task.pk).values().get()
    for model in MODELS:
        key = getattr(rows, model).pk
        assert root.post(page(model, "delete", key), {"post": "yes"}).status_code == 403
        if model != "queue":
            assert root.post(page(model, "add"), {"kind": "x"}).status_code == 403
        root.post(page(model, "change", key), {"kind": "x", "key": "y", "action": "z", "name": "n"})
    assert Task.objects.filter(pk=rows.task.pk).values().get() == before
    assert (AuditEntry.objects.count(), Task.objects.count()) == (1, 4)


def many_more(rows: Rows) -> None:
    for number in range(60):
        request("demo", key=f"more {number}", depends_on=[rows.task.pk], input="x" * 100)
        Run.objects.create(
            task_id=rows.task.pk, kind="demo", lease_token=number + 2, attempt=1,
            outcome="succeeded", ended_at=NOW,
        )  # fmt: skip
        make_runner(f"runner-{number}")
        record_act(Actor("user", "ann"), "x", object_kind="task", object_id=number, now=NOW)


def counts(client: Client, rows: Rows) -> dict[str, int]:
    found = {}
    for name, address in addresses(rows).items():
        with CaptureQueriesContext(connection) as asked:
            client.get(address)
        found[name] = len(asked)
    return found


def test_no_page_asks_more_when_there_is_more(root: Client) -> None:
    rows = make_rows()
    # The first page puts the CSRF token into the session.
    root.get(page("task", "changelist"))
    few = counts(root, rows)
    many_more(rows)
    assert counts(root, rows) == few
    assert max(few.values()) <= 14


def test_no_list_reads_what_may_be_large(root: Client) -> None:
    make_rows()
    large = {
        "task": ["input", "result", "last_error"],
        "run": ["trace", "input", "result"],
        "auditentry": ["before", "after"],
    }
    for model, columns in large.items():
        with CaptureQueriesContext(connection) as asked:
            root.get(page(model, "changelist"))
        read = " ".join(query["sql"] for query in asked)
        for column in columns:
            assert f'"scheduler_{model}"."{column}"' not in read, (model, column)


@pytest.mark.parametrize("role", ["viewer", "operator", "approver", "fleet-admin", "nobody"])
def test_no_role_gets_an_error_from_any_page(role: str, root: Client, visit: object) -> None:
    client = visit(role)  # type: ignore[operator]  # the fixture
    answers = {name: client.get(at).status_code for name, at in addresses(make_rows()).items()}
    assert set(answers.values()) <= {200, 403}
    assert (answers["task list"] == 200) is (role != "nobody")
    assert (answers["auditentry list"] == 200) is (role == "fleet-admin")


def test_the_history_of_a_task_is_its_audit(root: Client) -> None:
    rows = make_rows()
    answer = root.get(page("task", "history", rows.task.pk))
    wanted = f"?object_kind=task&object_id={rows.task.pk}"
    assert (answer.status_code, answer.headers["Location"]) == (
        302,
        page("auditentry", "changelist") + wanted,
    )


@pytest.mark.parametrize("key", ["x", "0", str(2**63), "9" * 40, "-1", "1_2"])
@pytest.mark.parametrize("model", MODELS)
def test_a_row_that_is_not_there_is_not_found(model: str, key: str, root: Client) -> None:
    assert root.get(page(model, "change", key)).status_code == 404
