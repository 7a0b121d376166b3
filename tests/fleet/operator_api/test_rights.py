"""Which role may do what: one table, every verb of the API, every role."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from fleet.operator_api.urls import router
from fleet.operator_api.views.freezes import Freezes
from tests.fleet.operator_api.callers import Caller, make_user
from tests.kanade.routes import KEY, make_rows

pytestmark = pytest.mark.django_db

EVERYBODY = frozenset({"viewer", "operator", "approver", "fleet-admin"})
OPERATORS = frozenset({"operator", "fleet-admin"})
APPROVERS = frozenset({"approver", "fleet-admin"})
ADMINS = frozenset({"fleet-admin"})

JOB = {
    "id": "new",
    "version": "1",
    "execute": {"shell": "sh", "script": "id", "timeout": "30s"},
}
SCHEDULE = {"id": "new", "when": {"per_pc": "once"}, "job_id": "x", "target": {"all": True}}
RUN = {"target": {"all": True}}


@dataclass(frozen=True)
class Verb:
    """One verb of the API, and the roles that may use it."""

    resource: str
    action: str
    method: str
    path: str
    roles: frozenset[str]
    body: Any = None

    @property
    def name(self) -> str:
        return f"{self.resource}.{self.action}"


VERBS = [
    Verb("agents", "list", "get", "agents/", EVERYBODY),
    Verb("agents", "retrieve", "get", "agents/x/", EVERYBODY),
    Verb("agents", "groups", "get", "agents/x/groups/", EVERYBODY),
    Verb("agents", "set_groups", "put", "agents/x/groups/", OPERATORS, {"groups": []}),
    Verb("agents", "join_group", "post", "agents/x/groups/", OPERATORS, {"group": "x"}),
    Verb("agents", "leave_group", "delete", "agents/x/groups/x/", OPERATORS),
    Verb("agents", "accept", "post", "agents/x/accept/", ADMINS),
    Verb("agents", "accept_many", "post", "agents/-/accept/", ADMINS, {"pcs": ["x"]}),
    Verb("agents", "revoke", "post", "agents/x/revoke/", ADMINS),
    Verb("agents", "take_over", "post", "agents/x/take-over/", ADMINS),
    Verb(
        "agents",
        "take_over_record",
        "post",
        "agents/x/take-over-record/",
        ADMINS,
        {"old": "x"},
    ),
    Verb("agents", "dismiss", "post", "agents/x/dismiss/", ADMINS),
    Verb("agents", "rotate", "post", "agents/x/rotate/", ADMINS),
    Verb("executions", "list", "get", "executions/", EVERYBODY),
    Verb("executions", "retrieve", "get", f"executions/{KEY}/", EVERYBODY),
    Verb("executions", "kill", "post", f"executions/{KEY}/kill/", OPERATORS),
    Verb("executions", "retry", "post", f"executions/{KEY}/retry/", OPERATORS),
    Verb("executions", "approve", "post", f"executions/{KEY}/approve/", APPROVERS),
    Verb("freeze", "retrieve", "get", "freeze/", EVERYBODY),
    Verb("freeze", "update", "put", "freeze/", OPERATORS, {"reason": "x"}),
    Verb("freeze", "destroy", "delete", "freeze/", OPERATORS),
    Verb("groups", "list", "get", "groups/", EVERYBODY),
    Verb("groups", "retrieve", "get", "groups/x/", EVERYBODY),
    Verb("groups", "create", "post", "groups/", OPERATORS, {"id": "new", "members": []}),
    Verb("groups", "update", "put", "groups/x/", OPERATORS, {"id": "x", "members": []}),
    Verb("groups", "partial_update", "patch", "groups/x/", OPERATORS, {"members": []}),
    Verb("groups", "destroy", "delete", "groups/x/", OPERATORS),
    Verb("jobs", "list", "get", "jobs/", EVERYBODY),
    Verb("jobs", "retrieve", "get", "jobs/x/", EVERYBODY),
    Verb("jobs", "job_status", "get", "jobs/x/status/", EVERYBODY),
    Verb("jobs", "create", "post", "jobs/", OPERATORS, JOB),
    Verb("jobs", "update", "put", "jobs/x/", OPERATORS, JOB | {"id": "x", "version": "9"}),
    Verb("jobs", "partial_update", "patch", "jobs/x/", OPERATORS, {"description": "y"}),
    Verb("jobs", "destroy", "delete", "jobs/x/", OPERATORS),
    Verb("jobs", "exec", "post", "jobs/x/exec/", OPERATORS, RUN),
    Verb("jobs", "kill", "post", "jobs/x/kill/", OPERATORS),
    Verb("jobs", "revoke", "post", "jobs/x/revoke/", OPERATORS),
    Verb("jobs", "unrevoke", "post", "jobs/x/unrevoke/", OPERATORS),
    Verb("jobs", "approve", "post", "jobs/x/approve/", APPROVERS),
    Verb("results", "list", "get", "results/", EVERYBODY),
    Verb("results", "retrieve", "get", f"results/{KEY}/", EVERYBODY),
    Verb("results", "output", "get", f"results/{KEY}/output/", EVERYBODY),
    Verb("schedules", "list", "get", "schedules/", EVERYBODY),
    Verb("schedules", "retrieve", "get", "schedules/x/", EVERYBODY),
    Verb("schedules", "preview", "get", "schedules/x/preview/", EVERYBODY),
    Verb("schedules", "schedule_status", "get", "schedules/x/status/", EVERYBODY),
    Verb("schedules", "coverage", "get", "schedules/x/coverage/", EVERYBODY),
    Verb("schedules", "explain", "get", "schedules/x/explain/", EVERYBODY),
    Verb("schedules", "create", "post", "schedules/", OPERATORS, SCHEDULE),
    Verb("schedules", "update", "put", "schedules/x/", OPERATORS, SCHEDULE | {"id": "x"}),
    Verb("schedules", "partial_update", "patch", "schedules/x/", OPERATORS, {"jitter": "1m"}),
    Verb("schedules", "destroy", "delete", "schedules/x/", OPERATORS),
    Verb("schedules", "enable", "post", "schedules/x/enable/", OPERATORS),
    Verb("schedules", "disable", "post", "schedules/x/disable/", OPERATORS),
    Verb("schedules", "fire", "post", "schedules/x/fire/", OPERATORS),
]
# What a request can ask for beside the verb.
MORE = [
    Verb("jobs", "put a new one", "put", "jobs/new/", OPERATORS, JOB),
    Verb(
        "jobs", "override", "post", "jobs/x/exec/", ADMINS,
        RUN | {"override_freeze": True, "reason": "CVE"},
    ),
    Verb(
        "schedules", "override", "post", "schedules/x/fire/", ADMINS,
        {"override_freeze": True, "reason": "CVE"},
    ),
    Verb(
        "executions", "override", "post", f"executions/{KEY}/retry/", ADMINS,
        {"override_freeze": True, "reason": "CVE"},
    ),
    Verb("schedules", "cascade", "post", "schedules/x/disable/", OPERATORS, {"cascade": True}),
]  # fmt: skip


def test_every_verb_of_the_api_is_in_the_table() -> None:
    views: dict[str, Any] = {prefix: view for prefix, view, _ in router.registry}
    views["freeze"] = Freezes
    there = {f"{prefix}.{action}" for prefix, view in views.items() for action in view.rights}

    assert {verb.name for verb in VERBS} == there


@contextmanager
def undone() -> Iterator[None]:
    """Undo what is written inside, so that each role finds the same rows."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.mark.parametrize("verb", VERBS + MORE, ids=lambda verb: verb.name)
def test_roles_may_do_what_the_table_says(verb: Verb) -> None:
    make_rows()
    for role in sorted(EVERYBODY):
        with undone():
            answer = Caller(make_user(role)).call(verb.method, verb.path, verb.body)

            allowed = {200, 201, 204, 409} if role in verb.roles else {403}
            assert answer.status_code in allowed, (role, answer.content)


@pytest.mark.parametrize("verb", VERBS + MORE, ids=lambda verb: verb.name)
def test_nobody_else_may_do_anything(verb: Verb) -> None:
    make_rows()
    without_role = User.objects.create_user("new", is_staff=True)
    without_staff = make_user("fleet-admin", is_staff=False)

    for user in (without_role, without_staff):
        answer = Caller(user).call(verb.method, verb.path, verb.body)

        assert answer.status_code == 403, user


@pytest.mark.parametrize("path", ["jobs/", "freeze/", "agents/x/", f"results/{KEY}/output/"])
def test_a_verb_that_an_address_does_not_have_is_not_allowed(path: str) -> None:
    make_rows()
    caller = Caller(make_user())

    for method in ("put", "patch", "delete", "post"):
        if (method, path) in {("post", "jobs/"), ("put", "freeze/"), ("delete", "freeze/")}:
            continue
        assert caller.call(method, path, {}).status_code == 405, method
