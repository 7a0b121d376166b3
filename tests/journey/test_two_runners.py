"""Two runners on one database; the one that is at it is killed in the middle of a tick."""

import signal
import sqlite3
import threading
import time
from collections import Counter
from contextlib import closing
from typing import Any

import psycopg
import pytest

from tests.journey.site import Site, until

pytestmark = [pytest.mark.concurrency]
SCHEDULES = 20
# What a takeover may take, in seconds.
TAKEN_OVER = 35.0
JOB = """
id: note
version: "1"
execute: {{ shell: sh, script: 'echo "$KANADE_P_NAME" >> {folder}/notes', timeout: 30s,
            params: {{ NAME: {{ required: true }} }} }}
"""
SCHEDULE = """
---
id: note-{number:02}
when: {{ calendar: {{ at: "2190-01-01 00:00" }} }}
job_id: note
params: {{ NAME: "note-{number:02}" }}
target: {{ pcs: [pc-1] }}
tz: utc
"""
# All calendars fall due at this moment, and somebody has them looked at.
FALL_DUE = """
from django.utils import timezone
from fleet.models import Schedule
from scheduler.public import request
now = timezone.now()
Schedule.objects.filter(slug__startswith="note-").update(next_fire_at=now)
request("fleet.tick", key="the killed one", now=now)
"""
AT_IT = """
SELECT r.name FROM scheduler_task t JOIN scheduler_runner r ON r.id = t.runner_id
WHERE t.key = 'the killed one' AND t.state = 'running'
AND EXISTS (SELECT 1 FROM fleet_occurrence)
"""


def ask(site: Site, question: str) -> list[tuple[Any, ...]]:
    """What the database answers."""
    if site.database.startswith("postgres"):
        with psycopg.connect(site.database, autocommit=True) as connection:
            return connection.execute(question.encode()).fetchall()
    with closing(sqlite3.connect(site.database.removeprefix("sqlite:///"))) as connection:
        return connection.execute(question).fetchall()


@pytest.fixture(scope="module")
def running(site: Site) -> Site:
    """A site with two runners, a PC, and calendars that never fall due by themselves."""
    path = site.folder / "notes.yaml"
    schedules = "".join(SCHEDULE.format(number=number) for number in range(SCHEDULES))
    path.write_text(JOB.format(folder=site.folder) + schedules)
    site.start_agent("pc-1")
    until(
        lambda: ask(site, "SELECT 1 FROM fleet_agentpresence WHERE last_seen_at IS NOT NULL"),
        within_s=40,
        what="the PC is there",
        log=lambda: site.log("agent-pc-1"),
    )
    site.manage("apply", str(path))
    return site


def test_a_runner_that_is_killed_in_a_tick_is_replaced_and_nothing_fires_twice(
    running: Site,
) -> None:
    runners = {name: running.start_runner(name) for name in ("first", "second")}
    until(
        lambda: len(ask(running, "SELECT 1 FROM scheduler_runner WHERE stopped_at IS NULL")) == 2,
        within_s=40,
        what="both runners are there",
    )
    killed_at: list[float] = []

    def hunt() -> None:
        pause, last = threading.Event(), time.monotonic() + 60
        while not killed_at and time.monotonic() < last:
            for (name,) in ask(running, AT_IT):
                runners[name].send_signal(signal.SIGKILL)
                killed_at.append(time.monotonic())
            pause.wait(0.002)

    hunter = threading.Thread(target=hunt)
    hunter.start()
    running.manage("shell", "--command", FALL_DUE)
    hunter.join()

    assert killed_at, "nobody was caught in the tick"
    until(
        lambda: len(ask(running, "SELECT 1 FROM fleet_occurrence")) == SCHEDULES,
        within_s=TAKEN_OVER - (time.monotonic() - killed_at[0]),
        what="the other one takes over",
        log=lambda: running.log("first") + running.log("second"),
    )
    until(
        lambda: len(ask(running, "SELECT 1 FROM fleet_result")) == SCHEDULES,
        within_s=60,
        what="all results",
        log=lambda: running.log("agent-pc-1"),
    )

    names = [f"note-{number:02}" for number in range(SCHEDULES)]
    assert Counter((running.folder / "notes").read_text().split()) == Counter(names)
    fired = ask(running, "SELECT schedule_id, state FROM fleet_occurrence")
    assert Counter(state for _, state in fired) == {"fired": SCHEDULES}
    assert len({schedule for schedule, _ in fired}) == SCHEDULES
    assert ask(running, "SELECT count(*), count(DISTINCT execution_id) FROM fleet_command") == [
        (SCHEDULES, SCHEDULES)
    ]
    assert ask(running, "SELECT DISTINCT outcome FROM fleet_result") == [("succeeded",)]
    (survivor,) = (name for name, process in runners.items() if process.poll() is None)
    assert survivor in runners
