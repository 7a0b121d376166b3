"""From a file to a script's real output, with real processes."""

import json
import time
from datetime import UTC, datetime, timedelta

import pytest

from tests.journey.site import Site, until

pytestmark = [pytest.mark.concurrency]

JOB = """
id: {name}
version: "1"
execute: {{ shell: sh, script: "echo done by {name} on $(uname -s)", timeout: 30s }}
"""
SCHEDULE = """
---
id: {name}-6h
when: {{ per_pc: {{ every: 6h }} }}
job_id: {name}
target: {{ all: true }}
tz: utc
"""


@pytest.fixture(scope="module")
def running(site: Site) -> Site:
    """A site with a runner and one agent that has been heard."""
    site.start_runner()
    site.start_agent("pc-1")
    token = site.token()
    until(
        lambda: site.api(token, "GET", "agents/pc-1/")[0] == 200,
        within_s=30,
        what="the agent enrols",
        log=lambda: site.log("agent-pc-1"),
    )
    return site


def results_of(site: Site, token: str, job: str) -> list[dict[str, object]]:
    status, body = site.api(token, "GET", f"results/?job={job}")
    assert status == 200, body
    return list(body["results"])


def apply(site: Site, name: str, more: str = "") -> None:
    path = site.folder / f"{name}.yaml"
    path.write_text((JOB + SCHEDULE).format(name=name) + more)
    site.manage("apply", str(path))


def test_an_applied_schedule_gives_a_result_with_real_output_within_15_seconds(
    running: Site,
) -> None:
    token = running.token()
    started = time.monotonic()

    apply(running, "first")
    (result,) = until(
        lambda: results_of(running, token, "first"),
        within_s=15,
        what="a result",
        log=lambda: running.log("runner") + running.log("agent-pc-1"),
    )

    assert time.monotonic() - started < 15
    assert result["outcome"] == "succeeded"
    status, output = running.api(token, "GET", f"results/{result['id']}/output/")
    assert (status, output) == (200, "done by first on Linux\n")


def test_with_its_window_closed_explain_names_the_window_and_when_it_opens(running: Site) -> None:
    opens = (datetime.now(UTC) + timedelta(hours=2)).strftime("%H:00")
    closes = (datetime.now(UTC) + timedelta(hours=3)).strftime("%H:00")

    apply(running, "closed", f'constraints: {{ window: "{opens}-{closes}" }}\n')
    told = running.manage("explain", "closed-6h")

    assert f"{opens}-{closes}" in told
    assert f"{opens}" in told.split("opens", 1)[1]
    assert results_of(running, running.token(), "closed") == []


def test_a_freeze_holds_everything_and_a_thaw_lets_it_go_on(running: Site) -> None:
    token = running.token()
    assert running.api(token, "PUT", "freeze/", {"reason": "year end"})[0] == 200

    apply(running, "frozen")
    status, refused = running.api(token, "POST", "jobs/frozen/exec/", {"target": {"all": True}})
    until(
        lambda: "frozen" in running.manage("explain", "frozen-6h").lower(),
        within_s=15,
        what="the tick says that it is frozen",
    )
    assert status == 409
    assert "year end" in json.dumps(refused)
    assert results_of(running, token, "frozen") == []

    assert running.api(token, "DELETE", "freeze/")[0] == 204
    (result,) = until(
        lambda: results_of(running, token, "frozen"), within_s=20, what="it goes on by itself"
    )
    assert result["outcome"] == "succeeded"


def test_a_schedule_that_agents_fire_themselves_gives_a_result_as_any_other(running: Site) -> None:
    token = running.token()

    apply(running, "local", "runs_on: agent\n")
    (result,) = until(
        lambda: results_of(running, token, "local"),
        within_s=45,
        what="a result of the agent's own fire",
        log=lambda: running.log("agent-pc-1") + running.log("web"),
    )

    assert (result["outcome"], result["execution"]) == ("succeeded", None)
    status, output = running.api(token, "GET", f"results/{result['id']}/output/")
    assert (status, output) == (200, "done by local on Linux\n")
