"""Who answers which address, and how the site starts and stops."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from wsgiref.types import StartResponse

from fleet.agent_api.waiting_room import WaitingRoom
from fleet.rules.tickets import Ticket, write_ticket
from kanade.asgi import Site
from kanade.bridge import Bridge
from tests.kanade.asgi_client import ask, scope

KEY = b"k" * 32
WAIT = "/api/agent/v1/wait"


class Ears:
    """Hears one call of agent 7 once it is asked to."""

    def __init__(self) -> None:
        self.speak = asyncio.Event()

    async def listen(self, called: Callable[[list[int] | None], None]) -> None:
        await self.speak.wait()
        called([7])
        await asyncio.Event().wait()


def django(_environ: dict[str, Any], start: StartResponse) -> list[bytes]:
    start("200 OK", [])
    return [b"django"]


def site(ears: Ears) -> Site:
    bridge = Bridge(django, threads=1)
    room = WaitingRoom(
        calls_per_second=1000, clock=lambda: datetime.now(UTC), free=bridge.free_threads
    )
    return Site(bridge, room, ears, KEY)


def ticket() -> str:
    return write_ticket(Ticket(7, datetime.now(UTC)), key=KEY)


def test_ordinary_requests_are_djangos() -> None:
    async def scene() -> bytes:
        return (await ask(site(Ears()), scope("/api/agent/v1/exchange"))).body

    assert asyncio.run(scene()) == b"django"


def test_a_waiting_agent_is_called_back_by_what_commits() -> None:
    async def scene() -> int:
        ears = Ears()
        waiting = asyncio.create_task(ask(site(ears), scope(WAIT, query=f"ticket={ticket()}")))
        await asyncio.sleep(0)
        ears.speak.set()
        return (await waiting).status

    assert asyncio.run(scene()) == 200


def test_waits_end_when_the_site_stops() -> None:
    async def scene() -> tuple[list[str], int]:
        app = site(Ears())
        events = ["lifespan.startup", "lifespan.shutdown"]
        stop = asyncio.Event()
        sent: list[str] = []

        async def receive() -> dict[str, Any]:
            if len(events) == 1:
                await stop.wait()
            return {"type": events.pop(0)}

        async def send(message: Any) -> None:
            sent.append(message["type"])

        living = asyncio.create_task(app({"type": "lifespan"}, receive, send))
        waiting = asyncio.create_task(ask(app, scope(WAIT, query=f"ticket={ticket()}")))
        await asyncio.sleep(0.01)
        stop.set()
        await living
        return sent, (await waiting).status

    sent, status = asyncio.run(scene())

    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert status == 204


def test_no_part_of_the_site_speaks_websocket() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    asyncio.run(site(Ears())({"type": "websocket", "path": "/"}, receive, send))

    assert sent == [{"type": "websocket.close"}]
