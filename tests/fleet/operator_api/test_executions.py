"""Executions over HTTP: listed cheaply, read with waves, counts and a page of commands."""

import uuid

import pytest

from fleet.models import Execution, Result, Wave
from fleet.rules.command_states import CommandState
from fleet.rules.execution_states import ExecutionState
from tests.fleet.make import (
    NOW,
    make_agent,
    make_command,
    make_execution,
    make_job,
    make_schedule,
    revise,
)
from tests.fleet.operator_api.callers import Caller, errors, make_user, ok

pytestmark = pytest.mark.django_db


@pytest.fixture
def viewer() -> Caller:
    return Caller(make_user("viewer"))


def ids(answer: object) -> list[str]:
    return [execution["id"] for execution in ok(answer)["results"]]  # type: ignore[arg-type]


def test_the_newest_execution_comes_first(viewer: Caller) -> None:
    first, second = make_execution(), make_execution()

    assert ids(viewer.get("executions/")) == [str(second.pk), str(first.pk)]


def test_an_execution_says_what_ran_for_whom_and_how_far_it_is(viewer: Caller) -> None:
    schedule = make_schedule("nightly", job=make_job("patch", version="1.2"))
    execution = make_execution(
        schedule.job, schedule=schedule, schedule_slug="nightly", planned=3, target={"all": True}
    )
    for state in (CommandState.STARTED, CommandState.SUCCEEDED):
        make_command(execution=execution, state=state)

    body = ok(viewer.get("executions/"))["results"][0]

    assert (body["job"], body["version"], body["revision"]) == ("patch", "1.2", 1)
    assert (body["schedule"], body["target"]) == ("nightly", {"all": True})
    assert (body["state"], body["progress"]) == ("live", "running")
    assert (body["counts"]["running"], body["counts"]["succeeded"]) == (1, 1)
    assert body["created_at"] == "2026-12-01T12:00:00Z"


def test_an_execution_too_large_for_a_list_is_counted_in_its_own_answer(viewer: Caller) -> None:
    execution = make_execution(planned=1_000_000)
    make_command(execution=execution, state=CommandState.STARTED)

    assert ok(viewer.get("executions/"))["results"][0]["counts"] is None
    assert ok(viewer.get(f"executions/{execution.pk}/"))["counts"]["running"] == 1


def test_an_execution_is_read_with_its_commands_and_waves(viewer: Caller) -> None:
    execution = make_execution(planned=1)
    Wave.objects.create(
        execution=execution, number=0, group_slug="canary", due_at=NOW, deadline_at=NOW
    )
    agent = make_agent("pc-7")
    command = make_command(agent, execution=execution, state=CommandState.FAILED, reason="exit 3")
    Result.objects.create(
        command_id=command.pk,
        execution_id=execution.pk,
        agent_id=agent.pk,
        job_id=execution.job_id,
        revision_id=execution.revision_id,
        job_version="1",
        outcome="failed",
        exit_code=3,
        received_at=NOW,
    )

    body = ok(viewer.get(f"executions/{execution.pk}/"))

    assert [wave["group"] for wave in body["waves"]] == ["canary"]
    [shown] = body["commands"]["results"]
    assert (shown["pc"], shown["pc_id"]) == ("pc-7", agent.uuid_text)
    assert (shown["state"], shown["reason"], shown["exit_code"]) == ("failed", "exit 3", 3)


def test_commands_are_paged_and_narrowed(viewer: Caller) -> None:
    execution = make_execution(planned=3)
    for name in ("a", "b", "c"):
        make_command(make_agent(name), execution=execution)
    make_command(make_agent("d"), execution=execution, state=CommandState.FAILED)
    address = f"executions/{execution.pk}/"

    first = ok(viewer.get(f"{address}?page_size=3"))["commands"]
    second = ok(viewer.get(first["next"].removeprefix("http://testserver")))["commands"]
    failed = ok(viewer.get(f"{address}?state=failed"))["commands"]["results"]
    of_b = ok(viewer.get(f"{address}?pc=B"))["commands"]["results"]

    assert [command["pc"] for command in first["results"]] == ["d", "c", "b"]
    assert [command["pc"] for command in second["results"]] == ["a"]
    assert [command["pc"] for command in failed] == ["d"]
    assert [command["pc"] for command in of_b] == ["b"]


def test_executions_are_narrowed_by_what_is_asked_for(viewer: Caller) -> None:
    agent = make_agent("pc-7")
    schedule = make_schedule("nightly", job=make_job("patch"))
    wanted = make_execution(schedule.job, schedule=schedule, state=ExecutionState.ENDED.value)
    make_command(agent, execution=wanted)
    make_execution()
    only = [str(wanted.pk)]

    assert ids(viewer.get("executions/?job=PATCH")) == only
    assert ids(viewer.get("executions/?schedule=nightly")) == only
    assert ids(viewer.get("executions/?pc=pc-7")) == only
    assert ids(viewer.get("executions/?state=ended")) == only
    assert ids(viewer.get("executions/?origin=schedule")) == []
    assert ids(viewer.get("executions/?since=2026-12-01T13:00:00%2B01:00")) != []
    assert ids(viewer.get("executions/?until=2026-12-01T12:00:00Z")) == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("since=yesterday", "since"),
        ("since=2026-12-01T12:00:00", "since"),
        ("since=0001-01-01T00:00:00%2B14:00", "since"),
        ("job=nothing", "job"),
        ("pc=nobody", "pc"),
        ("state=%00", "state"),
        ("job_id=1", "job_id"),
    ],
)
def test_a_query_that_means_nothing_is_refused(viewer: Caller, query: str, field: str) -> None:
    answer = viewer.get(f"executions/?{query}")

    assert answer.status_code == 400
    assert list(errors(answer)) == [field]


@pytest.mark.parametrize("key", ["0199c0de-0000-7000-8000-000000000000", "1", "x", "%00"])
def test_an_unknown_execution_is_not_found(viewer: Caller, key: str) -> None:
    assert viewer.get(f"executions/{key}/").status_code == 404


def test_a_list_takes_the_same_number_of_queries_whatever_its_length(
    viewer: Caller, django_assert_num_queries: object
) -> None:
    for _ in range(4):
        make_command(execution=make_execution(schedule=make_schedule()))
    viewer.get("executions/")

    for size in (1, 4):
        # The token, its owner's rights (two), the page, the counts.
        with django_assert_num_queries(5):  # type: ignore[operator]
            ok(viewer.get(f"executions/?page_size={size}"))


def test_reading_one_takes_the_same_number_of_queries_whatever_its_size(
    viewer: Caller, django_assert_num_queries: object
) -> None:
    execution = make_execution(planned=4)
    for _ in range(4):
        make_command(execution=execution)
    viewer.get("executions/")

    for size in (1, 4):
        # The token, rights (two), the execution, counts, waves, commands, their results.
        with django_assert_num_queries(8):  # type: ignore[operator]
            ok(viewer.get(f"executions/{execution.pk}/?page_size={size}"))


def test_a_list_reads_no_manifest(viewer: Caller) -> None:
    execution = make_execution()
    Execution.objects.filter(pk=execution.pk).update(reason="why")

    body = ok(viewer.get("executions/"))["results"][0]

    assert body["reason"] == "why"
    assert "script" not in str(body)


def test_an_execution_is_stopped_once() -> None:
    operator = Caller(make_user("operator"))
    execution = make_execution(planned=1)
    make_command(execution=execution)
    address = f"executions/{execution.pk}/kill/"

    body = ok(operator.post(address, {"reason": "wrong target"}))

    assert (body["state"], body["counts"]["cancelled"]) == ("cancelled", 1)
    assert "wrong target" in body["end_reason"]
    assert operator.post(address).status_code == 409


def test_an_execution_runs_again_where_it_failed() -> None:
    operator = Caller(make_user("operator"))
    execution = make_execution(planned=2)
    make_command(make_agent("good"), execution=execution, state=CommandState.SUCCEEDED)
    make_command(make_agent("bad"), execution=execution, state=CommandState.FAILED)

    body = ok(operator.post(f"executions/{execution.pk}/retry/", {"reason": "again"}), 201)

    commands = ok(operator.get(f"executions/{body['id']}/"))["commands"]["results"]
    assert [command["pc"] for command in commands] == ["bad"]
    assert operator.post(f"executions/{body['id']}/retry/").status_code == 409


def test_a_second_person_lets_an_execution_start() -> None:
    author = make_user("operator")
    make_user("approver")
    make_agent("pc-1")
    job = make_job("patch")
    revise(job, version="2", require_approval=True)
    waiting = ok(Caller(author).post("jobs/patch/exec/", {"target": {"all": True}}), 201)
    assert waiting["state"] == "awaiting_approval"
    address = f"executions/{waiting['id']}/approve/"

    assert Caller(author).post(address).status_code == 403
    admin = Caller(make_user("fleet-admin"))
    assert ok(admin.post(address))["state"] == "live"
    assert admin.post(address).status_code == 409


@pytest.mark.parametrize("verb", ["kill", "approve", "retry"])
def test_verbs_of_an_unknown_execution_are_not_found(verb: str) -> None:
    admin = Caller(make_user("fleet-admin"))

    assert admin.post(f"executions/{uuid.uuid4()}/{verb}/").status_code == 404
