"""Simulated agents against a real server: the whole protocol, many at once."""

import json
import os
from typing import Any

import pytest

from tests.journey.site import Site

PROVE = os.environ.get("KANADE_PROVE") == "1"
pytestmark = [pytest.mark.concurrency]

JOB = """
id: hello
version: "1"
execute: { shell: sh, script: "echo hello", timeout: 30s }
---
id: hello-often
when: { per_pc: { every: 1m } }
job_id: hello
target: { all: true }
tz: utc
"""


@pytest.fixture(scope="module")
def running(site: Site) -> Site:
    site.start_runner()
    path = site.folder / "hello.yaml"
    path.write_text(JOB)
    site.manage("apply", str(path))
    return site


def simulated(site: Site, *options: str, **more: Any) -> dict[str, Any]:
    told = site.manage("simulatefleet", "--server", site.url, *options, **more)
    found = json.loads(told.splitlines()[-1])
    assert isinstance(found, dict)
    return found


def test_simulated_agents_do_their_work_and_go_and_what_they_did_is_kept(running: Site) -> None:
    found = simulated(running, "--agents", "20", "--minutes", "0.15", "--longest", "0.5")

    assert (found["enrolled"], found["errors"], found["problems"]) == (20, 0, {})
    assert found["commands"] == found["started"] >= 20
    assert 20 <= found["results"] <= found["commands"]
    token = running.token()
    status, agents = running.api(token, "GET", "agents/?state=active")
    assert (status, agents["results"]) == (200, [])

    _, kept = running.api(token, "GET", "results/?job=hello")
    result = kept["results"][0]
    status, output = running.api(token, "GET", f"results/{result['id']}/output/")

    assert (status, result["outcome"]) == (200, "succeeded")
    assert len(output) == 500
    assert output.startswith("hello on ")


def test_a_server_that_does_not_answer_is_named(running: Site) -> None:
    told = running.manage(
        "simulatefleet", "--server", "http://192.0.2.1", "--token", "x", check=False
    )

    assert "is not encrypted; write https://" in told
