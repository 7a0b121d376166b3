"""Results over HTTP: found among millions by index, and output that stays bytes."""

import uuid

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.models import Agent, Job, Output, OutputChunk, Result, Schedule, new_id
from tests.fleet.make import NOW, make_agent, make_job, make_schedule
from tests.fleet.operator_api.callers import Caller, errors, make_user, ok

pytestmark = pytest.mark.django_db


@pytest.fixture
def viewer() -> Caller:
    return Caller(make_user("viewer"))


@pytest.fixture
def agent() -> Agent:
    return make_agent("pc-7")


@pytest.fixture
def job() -> Job:
    return make_job("patch")


def make_result(agent: Agent, job: Job, **fields: object) -> Result:
    values: dict[str, object] = {
        "command_id": new_id(),
        "execution_id": new_id(),
        "agent_id": agent.pk,
        "job_id": job.pk,
        "revision_id": job.current_id,
        "job_version": "1",
        "outcome": "succeeded",
        "exit_code": 0,
        "received_at": NOW,
    }
    return Result.objects.create(**(values | fields))


def make_output(result: Result, head: bytes, tail: bytes = b"", **fields: object) -> Output:
    values: dict[str, object] = {
        "command_id": result.pk,
        "stream": "stdout",
        "head": head,
        "tail": tail,
        "total": len(head) + len(tail),
        "received_at": NOW,
    }
    return Output.objects.create(**(values | fields))


def ids(answer: object) -> list[str]:
    return [result["id"] for result in ok(answer)["results"]]  # type: ignore[arg-type]


def test_a_result_names_pc_job_and_schedule(viewer: Caller, agent: Agent) -> None:
    schedule = make_schedule("nightly", job=make_job("patch", version="2.0"))
    result = make_result(agent, schedule.job, schedule_id=schedule.pk, job_version="2.0")

    body = ok(viewer.get(f"results/{result.pk}/"))

    assert (body["pc"], body["job"], body["schedule"]) == ("pc-7", "patch", "nightly")
    assert (body["version"], body["outcome"], body["exit_code"]) == ("2.0", "succeeded", 0)
    assert body["received_at"] == "2026-12-01T12:00:00Z"


def test_a_result_outlives_what_it_names(viewer: Caller, agent: Agent, job: Job) -> None:
    result = make_result(agent, job, schedule_id=12345, execution_id=None)
    Schedule.objects.all().delete()
    Agent.objects.all().delete()

    body = ok(viewer.get(f"results/{result.pk}/"))

    assert (body["pc"], body["schedule"], body["execution"]) == (None, None, None)


def test_three_failures_are_found_among_many_successes(
    viewer: Caller, agent: Agent, job: Job
) -> None:
    failed = [make_result(agent, job, outcome="failed", exit_code=1) for _ in range(3)]
    for _ in range(60):
        make_result(agent, job)

    wanted = [str(result.pk) for result in reversed(failed)]
    assert ids(viewer.get("results/?outcome=failed")) == wanted
    assert ids(viewer.get("results/?status=failure")) == wanted


def test_results_are_narrowed_by_what_is_asked_for(viewer: Caller, agent: Agent, job: Job) -> None:
    wanted = make_result(agent, job, late=True)
    make_result(make_agent(), make_job(), outcome="killed")
    only = [str(wanted.pk)]

    assert ids(viewer.get("results/?pc=PC-7")) == only
    assert ids(viewer.get("results/?job=patch")) == only
    assert ids(viewer.get(f"results/?execution={wanted.execution_id}")) == only
    assert ids(viewer.get("results/?status=success")) == only
    assert ids(viewer.get("results/?late=true")) == only
    assert ids(viewer.get("results/?since=2026-12-01T12:00:01Z")) == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("late=1", "late"),
        ("outcome=fine", "outcome"),
        ("execution=7", "execution"),
        ("report_sha256__startswith=a", "report_sha256__startswith"),
    ],
)
def test_a_query_that_means_nothing_is_refused(viewer: Caller, query: str, field: str) -> None:
    answer = viewer.get(f"results/?{query}")

    assert answer.status_code == 400
    assert list(errors(answer)) == [field]


def test_no_list_reads_an_output_and_the_number_of_queries_is_fixed(
    viewer: Caller, agent: Agent, job: Job
) -> None:
    for _ in range(4):
        make_output(make_result(agent, job), b"x" * 1000)
    viewer.get("results/")

    for size in (1, 4):
        with CaptureQueriesContext(connection) as seen:
            ok(viewer.get(f"results/?page_size={size}"))
        # The token, its owner's rights (two), the page, PCs, jobs; no schedules to name.
        assert len(seen) == 6
        assert not any("fleet_output" in query["sql"] for query in seen)


def test_an_output_is_a_plain_file(viewer: Caller, agent: Agent, job: Job) -> None:
    result = make_result(agent, job)
    make_output(result, b"<script>alert(1)</script>\x00\xff\n")

    answer = viewer.get(f"results/{result.pk}/output/")

    assert answer.status_code == 200
    assert answer.content == b"<script>alert(1)</script>\x00\xff\n"
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{result.pk}-stdout.txt"'
    assert answer.headers["Cache-Control"] == "no-store"


def test_what_was_cut_out_is_said(viewer: Caller, agent: Agent, job: Job) -> None:
    result = make_result(agent, job)
    make_output(result, b"begin", b"end", total=1008)

    answer = viewer.get(f"results/{result.pk}/output/")

    assert answer.content == b"begin\n[1000 bytes omitted]\nend"
    assert answer.headers["Kanade-Omitted-Bytes"] == "1000"


def test_the_streams_are_apart(viewer: Caller, agent: Agent, job: Job) -> None:
    result = make_result(agent, job)
    make_output(result, b"out")
    make_output(result, b"err", stream="stderr")

    assert viewer.get(f"results/{result.pk}/output/?stream=stderr").content == b"err"
    assert viewer.get(f"results/{result.pk}/output/?stream=stdout").content == b"out"
    assert viewer.get(f"results/{result.pk}/output/?stream=stdin").status_code == 400


def test_an_output_in_another_code_page_says_so_and_stays_as_it_came(
    viewer: Caller, agent: Agent, job: Job
) -> None:
    result = make_result(agent, job, code_page="cp850")
    make_output(result, b"\x81")

    answer = viewer.get(f"results/{result.pk}/output/")

    assert answer.content == b"\x81"
    assert answer.headers["Content-Type"] == "text/plain"
    assert answer.headers["Kanade-Code-Page"] == "cp850"


def test_a_code_page_cannot_forge_a_header(viewer: Caller, agent: Agent, job: Job) -> None:
    result = make_result(agent, job, code_page="x\r\nSet-Cookie: a=b")
    make_output(result, b"x")

    answer = viewer.get(f"results/{result.pk}/output/")

    assert answer.status_code == 200
    assert "Kanade-Code-Page" not in answer.headers
    assert "Set-Cookie" not in answer.headers


def test_an_output_is_read_while_the_script_runs(viewer: Caller) -> None:
    command = new_id()
    for offset, data in ((3, b"def"), (0, b"abc")):
        OutputChunk.objects.create(
            command_id=command, stream="stdout", offset=offset, data=data, received_at=NOW
        )

    answer = viewer.get(f"results/{command}/output/")

    assert answer.content == b"abcdef"
    assert answer.headers["Kanade-Output"] == "unfinished"


def test_a_silent_script_has_an_empty_output(viewer: Caller, agent: Agent, job: Job) -> None:
    result = make_result(agent, job)

    answer = viewer.get(f"results/{result.pk}/output/")

    assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.parametrize("accept", ["text/plain", "application/json", "*/*", "text/*"])
def test_an_output_is_text_whatever_the_caller_prefers(
    viewer: Caller, agent: Agent, job: Job, accept: str
) -> None:
    result = make_result(agent, job)
    make_output(result, b"x")

    answer = viewer.get(f"results/{result.pk}/output/", accept=accept)

    assert (answer.status_code, answer.headers["Content-Type"]) == (
        200,
        "text/plain; charset=utf-8",
    )


@pytest.mark.parametrize("address", ["results/{}/", "results/{}/output/"])
def test_an_unknown_result_is_not_found(viewer: Caller, address: str) -> None:
    answer = viewer.get(address.format(uuid.uuid4()))

    assert answer.status_code == 404
    assert answer.headers["Content-Type"] == "application/problem+json"
