"""The audit over HTTP: newest first, narrowed by names that exist, never written."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduler.models import AuditEntry
from scheduler.public import Actor, record_act
from tests.scheduler.api.callers import Caller, make_staff, ok

pytestmark = pytest.mark.django_db

START = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)


@pytest.fixture
def auditor() -> Caller:
    return Caller(make_staff("scheduler.view_auditentry"))


def note(
    action: str, *, who: str = "ann", what: tuple[str, str] = ("job", "a"), hour: int = 0
) -> None:
    """Write an entry as a verb does."""
    record_act(
        Actor("user", who, address="192.0.2.7"),
        action,
        object_kind=what[0],
        object_id=what[1],
        before={"n": 1},
        after={"n": 2},
        reason="because",
        now=START + timedelta(hours=hour),
    )


def actions(answer: Any) -> list[str]:
    return [entry["action"] for entry in ok(answer)["results"]]


def test_entries_are_listed_newest_first_with_before_and_after(auditor: Caller) -> None:
    note("create")
    note("change", hour=1)
    (newest, oldest) = ok(auditor.get("audit/"))["results"]
    assert (newest["action"], oldest["action"]) == ("change", "create")
    assert newest == {
        "id": newest["id"],
        "at": "2026-03-02T09:00:00Z",
        "actor_kind": "user",
        "actor": "ann",
        "address": "192.0.2.7",
        "action": "change",
        "object_kind": "job",
        "object_id": "a",
        "before": {"n": 1},
        "after": {"n": 2},
        "reason": "because",
    }


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("action=create", ["create"]),
        ("actor=bob", ["freeze"]),
        ("object=task", ["cancel"]),
        ("object=job:a", ["create"]),
        ("object=job:b:c", ["change"]),
        ("object_kind=job", ["change", "create"]),
        ("object_id=a", ["create"]),
        ("since=2026-03-02T10:00:00Z", ["freeze", "cancel"]),
        ("until=2026-03-02T10:00:00%2B01:00", ["create"]),
        ("actor=ann&object=task&since=2026-03-02T09:00:00Z", ["cancel"]),
        ("actor=nobody", []),
    ],
)
def test_entries_are_narrowed(auditor: Caller, query: str, found: list[str]) -> None:
    note("create")
    note("change", what=("job", "b:c"), hour=1)
    note("cancel", what=("task", "7"), hour=2)
    note("freeze", who="bob", what=("freeze", "1"), hour=3)
    assert actions(auditor.get(f"audit/?{query}")) == found


@pytest.mark.parametrize("query", ["since=yesterday", "since=2026-03-02T10:00:00", "who=ann"])
def test_a_bad_filter_is_refused(auditor: Caller, query: str) -> None:
    assert auditor.get(f"audit/?{query}").status_code == 400


def test_one_entry_is_read(auditor: Caller) -> None:
    note("create")
    entry = AuditEntry.objects.get()
    assert ok(auditor.get(f"audit/{entry.pk}/"))["action"] == "create"


@pytest.mark.parametrize("entry", ["1", "9" * 30])
def test_an_unknown_entry_is_not_found(auditor: Caller, entry: str) -> None:
    assert auditor.get(f"audit/{entry}/").status_code == 404


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_nobody_writes_the_audit(auditor: Caller, method: str) -> None:
    note("create")
    entry = AuditEntry.objects.get()
    assert auditor.call(method, f"audit/{entry.pk}/", {"action": "x"}).status_code == 405
    assert auditor.call(method, "audit/", {"action": "x"}).status_code == 405
    assert AuditEntry.objects.get().action == "create"


def test_a_text_of_a_hostile_program_is_answered_as_json(auditor: Caller) -> None:
    note("<script>alert(1)</script>", who="'\"><img src=x onerror=alert(1)>")
    answer = auditor.get("audit/")
    assert answer.headers["Content-Type"].startswith("application/json")
    assert actions(answer) == ["<script>alert(1)</script>"]
