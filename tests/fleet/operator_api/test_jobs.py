"""Jobs over HTTP: the manifest in and out, and the verbs that run and stop."""

import pytest

from fleet.models import Execution, Freeze, Job, JobRevision
from fleet.rules.command_states import CommandState
from tests.fleet.make import (
    make_agent,
    make_command,
    make_execution,
    make_job,
    make_schedule,
    revise,
)
from tests.fleet.operator_api.callers import Caller, errors, make_user, ok

pytestmark = pytest.mark.django_db

DOCUMENT = {
    "id": "inventory",
    "version": "1.2.0",
    "execute": {"shell": "sh", "script": "uname -a", "timeout": "30s"},
}


@pytest.fixture
def operator() -> Caller:
    return Caller(make_user("operator"))


@pytest.fixture
def admin() -> Caller:
    return Caller(make_user("fleet-admin"))


def test_a_job_is_its_manifest_in_and_out(operator: Caller) -> None:
    answer = operator.post("jobs/", DOCUMENT)

    assert ok(answer, 201) == DOCUMENT
    assert answer.headers["Location"] == "http://testserver/api/v1/jobs/inventory/"
    assert ok(operator.get("jobs/Inventory/")) == DOCUMENT
    assert ok(operator.get("jobs/"))["results"] == [DOCUMENT]
    assert ok(operator.put("jobs/inventory/", DOCUMENT)) == DOCUMENT
    assert JobRevision.objects.count() == 1


def test_an_id_that_is_taken_is_a_conflict_and_changes_nothing(operator: Caller) -> None:
    ok(operator.post("jobs/", DOCUMENT), 201)

    answer = operator.post("jobs/", DOCUMENT | {"id": "INVENTORY", "version": "2"})

    assert answer.status_code == 409
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert list(errors(answer)) == ["id"]
    assert JobRevision.objects.count() == 1


def test_put_makes_and_then_changes(operator: Caller) -> None:
    assert operator.put("jobs/inventory/", DOCUMENT).status_code == 201

    changed = DOCUMENT | {"description": "what is installed"}
    assert ok(operator.put("jobs/inventory/", changed))["description"] == "what is installed"
    assert JobRevision.objects.count() == 2


def test_what_runs_does_not_change_under_a_version_that_is_used(operator: Caller) -> None:
    ok(operator.post("jobs/", DOCUMENT), 201)
    other = DOCUMENT | {"execute": {"shell": "sh", "script": "id", "timeout": "30s"}}

    answer = operator.put("jobs/inventory/", other)

    assert answer.status_code == 400
    assert list(errors(answer)) == ["version"]
    assert JobRevision.objects.count() == 1


def test_patch_changes_what_is_sent(operator: Caller) -> None:
    ok(operator.post("jobs/", DOCUMENT), 201)

    body = ok(operator.patch("jobs/inventory/", {"version": "1.3.0", "execute": {"timeout": "1m"}}))

    assert body["version"] == "1.3.0"
    assert body["execute"] == {"shell": "sh", "script": "uname -a", "timeout": "1m"}


def test_a_job_that_a_schedule_uses_is_not_deleted(operator: Caller) -> None:
    make_schedule(job=make_job("used"))
    make_job("spare")

    assert operator.delete("jobs/used/").status_code == 409
    assert operator.delete("jobs/spare/").status_code == 204
    assert operator.get("jobs/spare/").status_code == 404
    assert [job.slug for job in Job.objects.all()] == ["used"]


def test_a_key_without_effect_is_stored_with_a_warning(operator: Caller) -> None:
    answer = operator.post("jobs/", DOCUMENT | {"inventory": {"app": "x"}})

    assert ok(answer, 201)["inventory"] == {"app": "x"}
    assert "inventory" in answer.headers["Kanade-Warnings"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"version": None}, "version"),
        ({"id": "../etc"}, "id"),
        ({"execute": None}, "execute"),
        ({"execute": {"shell": "zsh", "script": "x", "timeout": "1s"}}, "execute.shell"),
        ({"execute": {"shell": "sh", "script": "x", "timeout": "5x"}}, "execute.timeout"),
        ({"execute": {"shell": "sh", "script": "x", "timeout": "25h"}}, "execute.timeout"),
        ({"execute": {"shell": "sh", "script": "", "timeout": "1s"}}, "execute.script"),
        (
            {"execute": {"shell": "sh", "script": "x", "timeout": "1s", "tiemout": "2s"}},
            "execute.tiemout",
        ),
        (
            {"execute": {"shell": "sh", "script_file": "/etc/passwd", "timeout": "1s"}},
            "execute.script_file",
        ),
        (
            {"execute": {"shell": "sh", "script": "x", "timeout": "1s", "params": {"PATH;": "x"}}},
            "execute.params.PATH;",
        ),
        ({"finalize": {}}, "finalize"),
        ({"tier": "controller"}, "tier"),
        ({"revoked_at": None}, "revoked_at"),
        ({"slots_taken": 5}, "slots_taken"),
    ],
)
def test_a_bad_job_is_refused_by_its_dotted_path_and_nothing_is_stored(
    operator: Caller, change: dict[str, object], field: str
) -> None:
    answer = operator.post("jobs/", DOCUMENT | change)

    assert answer.status_code == 400
    assert field in errors(answer)
    assert Job.objects.count() == 0


def test_every_problem_is_named_at_once(operator: Caller) -> None:
    answer = operator.post("jobs/", {"id": "x", "execute": {"shell": "zsh"}, "evry": 1})

    assert {"version", "execute.shell", "execute.script", "execute.timeout", "evry"} <= set(
        errors(answer)
    )


def test_the_status_tells_revision_revocation_and_what_is_under_way(operator: Caller) -> None:
    job = make_job("patch", version="1")
    revise(job, version="2", current=False, require_approval=True)
    make_command(execution=make_execution(job), state=CommandState.STARTED)
    make_command(execution=make_execution(job))

    status = ok(operator.get("jobs/patch/status/"))

    assert (status["version"], status["current_version"]) == ("2", "1")
    assert status["waits_for_approval"] is True
    assert status["revoked"] is False
    assert status["live"] == {"running": 1, "pending": 1}
    assert ok(operator.get("jobs/?include=status"))["results"][0]["status"] == status
    assert ok(operator.get("jobs/patch/?include=status"))["status"] == status
    assert operator.get("jobs/?include=all").status_code == 400


def test_a_list_takes_the_same_number_of_queries_whatever_its_length(
    operator: Caller, django_assert_num_queries: object
) -> None:
    for _ in range(4):
        make_execution(make_job())
    operator.get("jobs/")

    for size in (1, 4):
        # The token, its owner's rights (two), the page; with status the open executions.
        with django_assert_num_queries(4):  # type: ignore[operator]
            ok(operator.get(f"jobs/?page_size={size}"))
        with django_assert_num_queries(5):  # type: ignore[operator]
            ok(operator.get(f"jobs/?page_size={size}&include=status"))


def test_jobs_are_narrowed(operator: Caller) -> None:
    make_job("patch-a")
    ok(operator.post("jobs/patch-a/revoke/"))
    make_job("other")

    def ids(query: str) -> list[str]:
        return [job["id"] for job in ok(operator.get(f"jobs/?{query}"))["results"]]

    assert ids("q=PATCH") == ["patch-a"]
    assert ids("revoked=true") == ["patch-a"]
    assert ids("revoked=false") == ["other"]


def test_a_job_runs_now_where_it_is_told(operator: Caller) -> None:
    make_job("patch")
    make_agent("pc-1")
    make_agent("pc-2")

    body = ok(
        operator.post(
            "jobs/patch/exec/", {"target": {"pcs": ["pc-1"]}, "deadline": "4h", "reason": "CVE"}
        ),
        201,
    )

    assert (body["job"], body["origin"], body["actor"]) == ("patch", "manual", "operator")
    assert (body["reason"], body["planned"], body["progress"]) == ("CVE", 1, "pending")
    commands = ok(operator.get(f"executions/{body['id']}/"))["commands"]["results"]
    assert [command["pc"] for command in commands] == ["pc-1"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "target"),
        ({"target": {}}, "target"),
        ({"target": None}, "target"),
        ({"target": {"pcs": ["nobody"]}}, "target"),
        ({"target": {"groups": ["none"]}}, "target"),
        ({"target": {"all": "yes"}}, "target.all"),
        ({"target": {"pc": ["pc-1"]}}, "target.pc"),
        ({"target": {"all": True}, "deadline": "soon"}, "deadline"),
        ({"target": {"all": True}, "deadline": 5}, "deadline"),
        ({"target": {"all": True}, "reason": 5}, "reason"),
        ({"target": {"all": True}, "reason": "x" * 1001}, "reason"),
        ({"target": {"all": True}, "override_freeze": "true"}, "override_freeze"),
        ({"target": {"all": True}, "targets": 1}, "targets"),
        ({"target": {"all": True}, "params": {"X": "1"}}, "params.X"),
        ({"target": {"all": True}, "params": {"X": 1}}, "params.X"),
    ],
)
def test_a_bad_run_is_refused_and_nothing_runs(operator: Caller, body: object, field: str) -> None:
    make_job("patch")
    make_agent("pc-1")

    answer = operator.post("jobs/patch/exec/", body)

    assert answer.status_code == 400
    assert list(errors(answer)) == [field]
    assert Execution.objects.count() == 0


def test_a_freeze_refuses_a_run(operator: Caller) -> None:
    make_job("patch")
    make_agent("pc-1")
    Freeze.objects.filter(pk=1).update(is_set=True, reason="year end")

    answer = operator.post("jobs/patch/exec/", {"target": {"all": True}})

    assert answer.status_code == 409
    assert "year end" in answer.json()["detail"]
    assert Execution.objects.count() == 0


def test_an_override_needs_the_right_and_a_reason(operator: Caller, admin: Caller) -> None:
    make_job("patch")
    make_agent("pc-1")
    Freeze.objects.filter(pk=1).update(is_set=True)
    body = {"target": {"all": True}, "override_freeze": True}

    assert operator.post("jobs/patch/exec/", body | {"reason": "CVE"}).status_code == 403
    assert list(errors(admin.post("jobs/patch/exec/", body))) == ["reason"]
    assert Execution.objects.count() == 0
    done = ok(admin.post("jobs/patch/exec/", body | {"reason": "CVE"}), 201)
    assert (done["override_freeze"], done["reason"]) == (True, "CVE")


def test_a_revoked_job_does_not_run_until_it_is_taken_back(operator: Caller) -> None:
    make_job("patch")
    make_agent("pc-1")
    run = {"target": {"all": True}}

    assert ok(operator.post("jobs/patch/revoke/", {"reason": "broken"}))["revoked"] is True
    assert operator.post("jobs/patch/exec/", run).status_code == 409
    assert ok(operator.post("jobs/patch/unrevoke/"))["revoked"] is False
    assert operator.post("jobs/patch/exec/", run).status_code == 201


def test_kill_stops_what_is_open_and_nothing_is_no_error(operator: Caller) -> None:
    job = make_job("patch")
    command = make_command(execution=make_execution(job))

    assert ok(operator.post("jobs/patch/kill/", {"reason": "wrong"})) == {"executions": 1}
    assert ok(operator.post("jobs/patch/kill/")) == {"executions": 0}
    command.refresh_from_db()
    assert command.state == "cancelled"


def test_a_second_person_lets_a_revision_run() -> None:
    author = make_user("operator")
    job = make_job("patch", version="1")
    revision = revise(job, version="2", current=False, require_approval=True)
    JobRevision.objects.filter(pk=revision.pk).update(created_by_id=author.pk)
    approver = Caller(make_user("approver"))

    assert Caller(author).post("jobs/patch/approve/").status_code == 403
    status = ok(approver.post("jobs/patch/approve/", {"revision": 2}))
    assert (status["current_version"], status["waits_for_approval"]) == ("2", False)
    assert approver.post("jobs/patch/approve/").status_code == 409


def test_nobody_approves_what_they_wrote() -> None:
    author = make_user("fleet-admin")
    job = make_job("patch", version="1")
    revision = revise(job, version="2", current=False, require_approval=True)
    JobRevision.objects.filter(pk=revision.pk).update(
        created_by_id=author.pk, created_by=author.username
    )

    assert Caller(author).post("jobs/patch/approve/").status_code == 403
    job.refresh_from_db()
    assert job.current != revision


@pytest.mark.parametrize("number", [99, 0, -1, "1", 1.5, 2**40])
def test_a_revision_that_is_none_is_refused(number: object) -> None:
    make_job("patch")

    answer = Caller(make_user("approver")).post("jobs/patch/approve/", {"revision": number})

    assert answer.status_code == 400
    assert list(errors(answer)) == ["revision"]
