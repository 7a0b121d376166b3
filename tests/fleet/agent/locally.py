"""Builders of what the server says about schedules with `runs_on: agent`."""

from datetime import datetime, timedelta
from typing import Any

from fleet.agent.bundle import LocalSchedule
from fleet.agent.envelope import SCHEDULES_TYPE
from fleet.rules.manifest import parse_job, parse_schedule
from tests.fleet.agent.make import AGENT_ID, NOW, SERVER_ID, sealed

Document = dict[str, Any]


def schedule_document(**fields: Any) -> Document:
    """A schedule that wants a success each hour."""
    return {
        "id": "inventory-1h",
        "when": {"per_pc": {"every": "1h"}},
        "job_id": "inventory",
        "target": {"all": True},
        "runs_on": "agent",
    } | fields


def job_document(script: str = "exit 0\n", **fields: Any) -> Document:
    """A job that takes half a minute at most."""
    execute = {"shell": "sh", "script": script, "timeout": "30s"}
    return {"id": "inventory", "version": "1.0.0", "execute": execute} | fields


def local_schedule(
    *, script: str = "exit 0\n", job: bool = True, is_revoked: bool = False, **fields: Any
) -> LocalSchedule:
    """A schedule as it stands in a bundle."""
    return LocalSchedule(
        parse_schedule(schedule_document(**fields)),
        parse_job(job_document(script)) if job else None,
        is_revoked,
    )


def part_payload(**fields: Any) -> Document:
    """What the server signs of a bundle with one schedule."""
    return {
        "v": 1,
        "server_id": SERVER_ID,
        "server_epoch": 1,
        "agent_id": AGENT_ID,
        "etag": "e1",
        "issued_at": NOW.isoformat(),
        "index": 0,
        "count": 1,
        "schedule": schedule_document(),
        "job": job_document(),
        "revoked": False,
    } | fields


def parts(
    *pairs: tuple[Document | None, Document | None],
    etag: str = "e1",
    issued_at: datetime = NOW,
) -> list[object]:
    """The envelopes of a bundle with these schedules and jobs."""
    return [
        sealed(
            part_payload(
                index=index,
                count=len(pairs),
                schedule=schedule,
                job=job,
                etag=etag,
                issued_at=issued_at.isoformat(),
            ),
            kind=SCHEDULES_TYPE,
        )
        for index, (schedule, job) in enumerate(pairs)
    ]


def at(hours: float = 0, minutes: float = 0, seconds: float = 0) -> datetime:
    """A time after NOW (2026-03-02 09:00 UTC, a Monday)."""
    return NOW + timedelta(hours=hours, minutes=minutes, seconds=seconds)
