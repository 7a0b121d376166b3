"""Exchanges: what one without news costs, and how fast work reaches those who wait."""

import asyncio
import json
import time
from collections.abc import Iterable

from asgiref.sync import sync_to_async
from django.db import connection
from django.utils import timezone

from fleet.management.benches.fleet_of import Pc, give_work, make_job, make_pcs
from fleet.management.benches.heartbeats import kanade_side, peer_side
from fleet.management.benches.web_server import Server, ask, web_server
from fleet.models import Command, JobRevision
from fleet.rules.command_states import CommandState
from scheduler.management.benches.measuring import (
    ROUNDS,
    Report,
    Write,
    in_turn,
    percentile,
    scratch_database,
)

WAITERS = 3_000
EXCHANGE, WAIT = "/api/agent/v1/exchange", "/api/agent/v1/wait"
# A page that asks the database.
PAGE, PAGES = "/readyz", 100
MOST_THREADS = 50
MOST_PAGE_S = 0.5
# So many are given work at once, and how long 95 of 100 may take to have it, in seconds.
STARTS = {1: 1.0, 100: 3.0, WAITERS: 30.0}


def run(*, write: Write, waiters: int = WAITERS, rounds: int = ROUNDS, **_options: object) -> bool:
    """Measure; return whether the goals are met."""
    report = Report("exchange", write)
    with scratch_database():
        pcs, job = make_pcs(waiters), make_job()
        ours, theirs = in_turn(kanade_side(pcs[0]), peer_side(pcs[0]), rounds=rounds)
        report.at_most(
            "CPU of an exchange without news / a DRF heartbeat with a token",
            ours / theirs,
            0.5,
            kanade_ms=ours,
            drf_ms=theirs,
            rounds=rounds,
        )
        with web_server() as server:
            asyncio.run(_wait_for_work(report, server, pcs, job))
    return report.is_ok


async def _wait_for_work(report: Report, server: Server, pcs: list[Pc], job: JobRevision) -> None:
    for count, most in STARTS.items():
        if count > len(pcs):
            continue
        waits = _begin_to_wait(server, pcs)
        await _all_wait(server)
        if count == 1:
            await _look_at_the_server(report, server, len(pcs))
        began = time.perf_counter()
        await sync_to_async(give_work)(job, pcs[:count])
        took = await asyncio.gather(
            *(_fetch(server, pc, waits[pc.pk], began) for pc in pcs[:count])
        )
        p95 = percentile(list(took), 0.95)
        case = f"seconds until {count} of {len(pcs)} waiters have their command, p95 / goal"
        report.at_most(case, p95 / most, 1.0, seconds=p95, goal_s=most)
        await _go_home(waits.values())
        await sync_to_async(_end_all)()


def _begin_to_wait(server: Server, pcs: Iterable[Pc]) -> dict[int, "asyncio.Task[int]"]:
    now = timezone.now()
    return {pc.pk: asyncio.create_task(_wait(server, pc.ticket(now))) for pc in pcs}


async def _wait(server: Server, ticket: str) -> int:
    status, _ = await ask(server.port, "GET", f"{WAIT}?ticket={ticket}&timeout=60")
    return status


async def _all_wait(server: Server) -> None:
    """Return once the server has taken everybody in: it answers somebody who came after them."""
    await asyncio.sleep(1)
    await ask(server.port, "GET", "/healthz")


async def _look_at_the_server(report: Report, server: Server, waiters: int) -> None:
    took = []
    for _ in range(PAGES):
        began = time.perf_counter()
        status, _ = await ask(server.port, "GET", PAGE)
        took.append(time.perf_counter() - began)
        assert status == 200, status  # noqa: PLR2004  # the number is the name
    threads = server.threads()
    report.at_most(
        f"threads with {waiters} waiters / {MOST_THREADS}",
        threads / MOST_THREADS,
        1.0,
        threads=threads,
        resident_mib=server.resident_mib(),
    )
    p99 = percentile(took, 0.99)
    report.at_most(
        f"an ordinary page with {waiters} waiters, p99 / goal",
        p99 / MOST_PAGE_S,
        1.0,
        seconds=p99,
    )


async def _fetch(server: Server, pc: Pc, wait: "asyncio.Task[int]", began: float) -> float:
    """Return how long after `began` the PC has its command."""
    await wait
    body = json.dumps(pc.message()).encode()
    while True:
        status, answer = await ask(server.port, "POST", EXCHANGE, body=body, token=pc.token.text)
        if status == 200 and json.loads(answer)["commands"]:  # noqa: PLR2004  # as above
            return time.perf_counter() - began
        await asyncio.sleep(0.5)


async def _go_home(waits: Iterable["asyncio.Task[int]"]) -> None:
    pending = list(waits)
    for wait in pending:
        wait.cancel()
    await asyncio.gather(*pending, return_exceptions=True)


def _end_all() -> None:
    Command.objects.update(state=CommandState.CANCELLED.value)
    # Of this thread: the database cannot be dropped while it is held.
    connection.close()
