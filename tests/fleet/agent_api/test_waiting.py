"""`GET /api/agent/v1/wait`, as an ASGI server calls it."""

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest

from fleet.agent_api.waiting import Message, WaitingApp
from fleet.agent_api.waiting_room import WaitingRoom
from fleet.rules.tickets import GOOD_FOR, Ticket, write_ticket

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
KEY = b"k" * 32


def ask(  # noqa: C901  # a server in small
    query: str,
    *,
    method: str = "GET",
    called: bool = False,
    most: int = 10,
    hangs_up: bool = False,
    stopped: bool = False,
) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body of one request; agent 7 may have been called before."""
    waiting = WaitingRoom(calls_per_second=100, clock=lambda: NOW, free=lambda: 100, most=most)
    if called:
        waiting.call([7])
    app = WaitingApp(waiting, key=KEY, clock=lambda: NOW)
    sent: list[Message] = []

    messages = iter([{"type": "http.request", "body": b""}])

    async def receive() -> Message:
        for message in messages:
            return message
        if not hangs_up:
            await asyncio.get_running_loop().create_future()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": method, "query_string": query.encode()}

    async def live() -> None:
        answering = asyncio.ensure_future(app(scope, receive, send))
        if stopped:
            while not len(waiting):
                await asyncio.sleep(0)
            answering.cancel()
        await asyncio.wait_for(answering, 20)

    asyncio.run(live())
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], headers, sent[1]["body"]


def ticket(agent: int = 7, *, age: timedelta = timedelta(0), key: bytes = KEY) -> str:
    return write_ticket(Ticket(agent, NOW - age), key=key)


def test_a_called_agent_is_told_so_and_nothing_else() -> None:
    status, headers, body = ask(f"ticket={ticket()}&timeout=1", called=True)

    assert (status, json.loads(body)) == (200, {"wake": True})
    assert headers == {
        "cache-control": "no-store",
        "content-type": "application/json",
        "content-length": "13",
    }


def test_an_agent_that_nobody_called_is_answered_without_a_body_when_its_time_is_up() -> None:
    status, headers, body = ask(f"ticket={ticket()}&timeout=1")

    assert (status, headers, body) == (204, {"cache-control": "no-store"}, b"")


@pytest.mark.parametrize(
    "query",
    [
        "",
        "ticket=",
        "ticket=7.1796126400000." + "A" * 43,
        f"ticket={write_ticket(Ticket(7, NOW), key=b'another')}",
        f"ticket={write_ticket(Ticket(7, NOW - GOOD_FOR), key=KEY)}",
        f"ticket={write_ticket(Ticket(7, NOW), key=KEY)}&filler={'x' * 300}",
        "ticket=%ff%00",
    ],
)
def test_without_a_good_ticket_nobody_waits(query: str) -> None:
    status, headers, body = ask(query, called=True)

    assert status == 401
    assert headers["www-authenticate"] == "Bearer"
    assert json.loads(body) == {"type": "about:blank", "title": "Unauthorized", "status": 401}


@pytest.mark.parametrize("method", ["POST", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"])
def test_other_verbs_are_refused(method: str) -> None:
    status, headers, _ = ask(f"ticket={ticket()}", method=method, called=True)

    assert (status, headers["allow"]) == (405, "GET")


def test_a_full_room_tells_the_agent_to_come_back_later() -> None:
    status, headers, _ = ask(f"ticket={ticket()}", most=0)

    assert (status, headers["retry-after"]) == (503, "5")


@pytest.mark.parametrize("timeout", ["0", "-1", "1e9", "\u0661", "", "abc", "1"])
def test_an_odd_timeout_harms_nobody(timeout: str) -> None:
    status, _, _ = ask(f"ticket={ticket()}&timeout={timeout}", called=True)

    assert status == 200


def test_an_agent_that_hangs_up_waits_no_longer() -> None:
    status, _, _ = ask(f"ticket={ticket()}&timeout=60", hangs_up=True)

    assert status == 204


def test_a_server_that_stops_tells_the_agent_to_come_back_by_itself() -> None:
    status, _, body = ask(f"ticket={ticket()}&timeout=60", stopped=True)

    assert (status, body) == (204, b"")
